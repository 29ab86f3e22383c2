#pragma once
// Releases the GIL for a time during which the interpreter may end. A thread that requests the GIL of an
// interpreter that is ending is terminated by it: Python unwinds its stack, as pthread_exit() does. If this
// unwinding left a destructor, the process would end by abort(). So a daemon thread that returns into an
// ended interpreter blocks here until the process is gone.

#include <Python.h>
#include <cxxabi.h>
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <string>

namespace carousel::python {

/// Releases the GIL while this object exists.
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

// Casts of values passed in by Python, with one-sentence error messages, because pybind11's own messages name
// C++ types, or list signatures over several lines.

/// Returns a value's text as Python prints it, in ASCII and truncated.
[[nodiscard]] inline std::string shown(pybind11::handle value) {
    constexpr std::size_t most = 60;
    const auto text = pybind11::reinterpret_steal<pybind11::object>(PyObject_ASCII(value.ptr()));
    if (!text) {
        PyErr_Clear();
        return "a value that can't be shown";
    }
    auto words = text.cast<std::string>();
    if (words.size() > most) words = words.substr(0, most - 3) + "...";
    return words;
}

/// Throws e.g. "capture_ns: expected a whole number, 0 or more, got -1" as a TypeError.
template <typename T>
[[nodiscard]] T checked_cast(pybind11::handle value, std::string_view what, std::string_view expected) {
    try {
        return value.cast<T>();
    } catch (const pybind11::cast_error&) {
        throw pybind11::type_error(fmt::format("{}: expected {}, got {}", what, expected, shown(value)));
    }
}

inline constexpr std::string_view whole_number = "a whole number from 0 to 2**64 - 1";
inline constexpr std::string_view text_value = "a text in UTF-8";

}  // namespace carousel::python
