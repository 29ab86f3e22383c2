#pragma once
// Casts of values passed in by Python, with one-sentence error messages, because pybind11's own messages name
// C++ types, or list signatures over several lines.

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

namespace carousel::python {

/// A value as Python prints it, in ASCII and truncated.
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
