#include "stages/python/frame.hpp"

#include <fmt/format.h>

#include <span>
#include <string>

#include "stages/python/gil.hpp"

namespace carousel::python {
namespace {

py::object object_of(const ring::metadata_value& value) {
    return std::visit(
        [](const auto& v) -> py::object {
            using kind = std::decay_t<decltype(v)>;
            if constexpr (std::same_as<kind, std::string_view>)
                return py::str(v.data(), v.size());
            else if constexpr (std::same_as<kind, std::span<const std::byte>>)
                return py::bytes(reinterpret_cast<const char*>(v.data()), v.size());
            else
                return py::cast(v);
        },
        value);
}

/// If the key is not text, raises KeyError, as a dict does for a key that it lacks.
std::string key_from(const py::object& key) {
    try {
        return key.cast<std::string>();
    } catch (const py::cast_error&) {
        throw py::key_error(shown(key));
    }
}

py::object get(const frame_object& f, const py::object& key) {
    const frame_metadata all = f.metadata();
    const std::string word = key_from(key);
    const auto found = ring::find_metadata(all.bytes(), word);
    if (!found) throw py::key_error(word);
    return object_of(*found);
}

// Integers are stored as i64, integers that are too large for i64 as u64. A NumPy number keeps its own type.
void set(const frame_object& f, const py::object& named, const py::object& value) {
    const auto key = checked_cast<std::string>(named, "a key of metadata", text_value);
    const std::string what = fmt::format("metadata \"{}\"", key);
    frame_metadata all = f.metadata();
    if (py::isinstance<py::bool_>(value)) return all.set(key, value.cast<bool>());
    if (py::isinstance<py::str>(value))
        return all.set(key, checked_cast<std::string>(value, what, text_value));
    if (py::isinstance<py::float_>(value)) return all.set(key, value.cast<f64>());
    if (py::isinstance<py::bytes>(value) || py::isinstance<py::bytearray>(value)) {
        const auto bytes = py::bytes(value).cast<std::string>();
        return all.set(key, std::as_bytes(std::span(bytes)));
    }
    if (PyIndex_Check(value.ptr()) != 0) {
        const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
        if (!whole) throw py::error_already_set();
        if (py::int_(0).attr("__le__")(whole).cast<bool>() && !py::isinstance<py::bool_>(whole)) {
            const u64 number = checked_cast<u64>(whole, what, "a whole number from -2**63 to 2**64 - 1");
            if (number > static_cast<u64>(INT64_MAX)) return all.set(key, number);
        }
        return all.set(key, checked_cast<i64>(whole, what, "a whole number from -2**63 to 2**64 - 1"));
    }
    if (PyFloat_Check(value.ptr()) == 0 && py::hasattr(value, "__float__") && !py::hasattr(value, "__len__"))
        return all.set(key, py::float_(value).cast<f64>());
    throw py::type_error(fmt::format("{}: expected bool, int, float, str or bytes, got {}", what,
                                     py::type::of(value).attr("__name__").cast<std::string>()));
}

py::list keys(const frame_object& f) {
    py::list all;
    const frame_metadata view = f.metadata();
    for (const ring::metadata_entry& e : view.entries()) all.append(py::str(e.key.data(), e.key.size()));
    return all;
}

}  // namespace

void bind_metadata(py::class_<frame_object, std::shared_ptr<frame_object>>& frame) {
    frame.def("_metadata_get", &get)
        .def("_metadata_set", &set)
        .def("_metadata_erase",
             [](const frame_object& f, const py::object& key) {
                 const std::string word = key_from(key);
                 if (!f.metadata().erase(word)) throw py::key_error(word);
             })
        .def("_metadata_keys", &keys);
}

}  // namespace carousel::python
