#pragma once
// Releases the GIL temporarily in cases where the interpreter may end in the meantime.
//
// A thread that requests the GIL of an interpreter that is ending is terminated by it: Python unwinds its
// stack, as pthread_exit() does. Nothing may unwind out of a destructor, which would end the process by
// abort(). So a daemon thread that returns into an ended interpreter blocks here until the process is gone.

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace carousel::python {

/// Releases the GIL for its lifetime.
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

/// True if the interpreter has ended, or admits no further threads: in that case Python objects must not be
/// touched.
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
