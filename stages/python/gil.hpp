#pragma once
// The GIL, given up for a while, where the interpreter may end meanwhile.
//
// A thread that asks for the GIL of an interpreter that ends is ended by it: Python unwinds its stack, as
// pthread_exit() does. Nothing may unwind out of a destructor, which would end the process by abort(). So a
// daemon thread that comes back into an ended interpreter stays here until the process is gone.

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace carousel::python {

/// Others have the GIL as long as this lives.
class gil_released {
public:
    gil_released() : state_(PyEval_SaveThread()) {}
    ~gil_released() {
        try {
            PyEval_RestoreThread(state_);
        } catch (const abi::__forced_unwind&) {
            for (;;) ::pause();
        }
    }
    gil_released(const gil_released&) = delete;
    gil_released& operator=(const gil_released&) = delete;

private:
    PyThreadState* state_;
};

/// The interpreter is gone, or takes no other thread in any more: what is Python's is left as it is.
[[nodiscard]] inline bool interpreter_is_closed() noexcept {
    if (Py_IsInitialized() == 0) return true;
#if PY_VERSION_HEX >= 0x030D0000
    const bool ends = Py_IsFinalizing() != 0;
#else
    const bool ends = _Py_IsFinalizing() != 0;
#endif
    return ends && PyGILState_Check() == 0;
}

}  // namespace carousel::python
