#include "stages/python/external_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace carousel::python {
namespace {

/// Returns the element type of a struct-module format, with 0 bits if a plane cannot have that type.
dl_type type_of_format(const char* format, Py_ssize_t bytes) {
    std::string_view word = format == nullptr ? "B" : format;
    // Native byte order only. Any other prefix, or a second letter, is another type: "Zf" is complex.
    if (word.size() == 2 && std::strchr("@=<|", word.front()) != nullptr) word.remove_prefix(1);
    if (word.size() != 1) return {};
    const char letter = word.front();
    const auto bits = static_cast<std::uint8_t>(bytes * 8);
    if (std::strchr("BHILQN", letter) != nullptr) return {dl_uint, bits, 1};
    if (std::strchr("bhilqn", letter) != nullptr) return {dl_int, bits, 1};
    if (std::strchr("efd", letter) != nullptr) return {dl_float, bits, 1};
    if (letter == '?') return {dl_bool, bits, 1};
    return {};
}

/// True if the array is in GPU memory. A plane of a frame supports both protocols in host memory, but only
/// DLPack on a GPU.
bool lies_on_gpu(const py::object& array) {
    return py::hasattr(array, "__dlpack_device__") &&
           array.attr("__dlpack_device__")().cast<py::tuple>()[0].cast<std::int32_t>() == dl_cuda;
}

}  // namespace

external_array::external_array(const py::object& from, int gpu, void* stream) : holder_(from) {
    if (PyObject_CheckBuffer(from.ptr()) != 0 && !lies_on_gpu(from)) {
        if (PyObject_GetBuffer(from.ptr(), &view_, PyBUF_RECORDS_RO) != 0) throw py::error_already_set();
        has_view_ = true;
        take_buffer();
        return;
    }
    if (!py::hasattr(from, "__dlpack__"))
        throw py::type_error(
            fmt::format("expected an array (a NumPy array, a tensor: a buffer or __dlpack__), got {}",
                        py::str(py::type::of(from).attr("__name__")).cast<std::string>()));
    const py::tuple at = from.attr("__dlpack_device__")();
    device = {at[0].cast<std::int32_t>(), at[1].cast<std::int32_t>()};
    // When the library is asked for the capsule, it orders its enqueued work before the work on the frame's
    // stream.
    const bool ordered = gpu >= 0 && device.type == dl_cuda;
    py::object capsule =
        ordered ? from.attr("__dlpack__")(py::arg("stream") = reinterpret_cast<std::uintptr_t>(stream))
                : from.attr("__dlpack__")();
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0)
        take_tensor(static_cast<dl_managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))->tensor);
    else if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0)
        take_tensor(
            static_cast<dl_managed_versioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"))
                ->tensor);
    else
        throw py::type_error("__dlpack__() returned something other than a DLPack capsule");
    holder_ = std::move(capsule);  // the capsule is not renamed here: it still belongs to the library, and
                                   // the library frees it
}

external_array::~external_array() {
    if (has_view_) PyBuffer_Release(&view_);
}

void external_array::take_buffer() {
    data = static_cast<const std::byte*>(view_.buf);
    type = type_of_format(view_.format, view_.itemsize);
    for (int k = 0; k < view_.ndim; ++k) {
        shape.push_back(view_.shape[k]);
        strides.push_back(view_.strides[k] / std::max<Py_ssize_t>(view_.itemsize, 1));
    }
}

void external_array::take_tensor(const dl_tensor& t) {
    data = static_cast<const std::byte*>(t.data) + t.offset;
    type = t.type;
    shape.assign(t.shape, t.shape + t.rank);
    if (t.strides != nullptr) {
        strides.assign(t.strides, t.strides + t.rank);
        return;
    }
    strides.assign(shape.size(), 1);
    for (std::size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
}

bool external_array::is_dense() const noexcept {
    i64 dense = 1;
    for (std::size_t k = shape.size(); k-- > 0; dense *= shape[k])
        if (shape[k] != 1 && strides[k] != dense) return false;
    return true;
}

std::string external_array::type_name() const {
    if (type.bits == 0) return "another type";
    const char* kind = type.code == dl_int      ? "i"
                       : type.code == dl_uint   ? "u"
                       : type.code == dl_float  ? "f"
                       : type.code == dl_bfloat ? "bf"
                       : type.code == dl_bool   ? "bool"
                                                : "a type with a number of bits: ";
    const std::string lanes = type.lanes == 1 ? "" : fmt::format("x{}", type.lanes);
    if (type.code == dl_float8_e4m3fn) return "f8_e4m3" + lanes;
    if (type.code == dl_float8_e5m2) return "f8_e5m2" + lanes;
    return type.code == dl_bool ? "bool" : fmt::format("{}{}{}", kind, type.bits, lanes);
}

std::string external_array::device_name() const {
    if (device.type == dl_cpu) return "cpu";
    if (device.type == dl_cuda) return fmt::format("cuda:{}", device.id);
    return fmt::format("DLPack's device ({}, {})", device.type, device.id);
}

}  // namespace carousel::python
