#pragma once
// Access to an array of another library, by the buffer protocol or DLPack, while it is being copied.

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "core/types.hpp"
#include "stages/python/element_types.hpp"

namespace carousel::python {

namespace py = pybind11;

class external_array {
public:
    /// `gpu` and `stream` belong to the destination memory; `gpu` is -1 for host memory. Throws type_error
    /// for an object that is not an array; exceptions of the array's library propagate.
    external_array(const py::object& from, int gpu, void* stream);
    ~external_array();
    external_array(const external_array&) = delete;
    external_array& operator=(const external_array&) = delete;

    const std::byte* data = nullptr;
    dl_device device{dl_cpu, 0};
    dl_type type{};
    std::vector<i64> shape, strides;  ///< strides in elements

    [[nodiscard]] bool is_dense() const noexcept;
    [[nodiscard]] std::string type_name() const;    ///< "f32"
    [[nodiscard]] std::string device_name() const;  ///< "cuda:0"
    /// Returns an object that keeps the array's memory alive, for a copy that is enqueued but not complete.
    [[nodiscard]] py::object keep() const { return holder_; }

private:
    void take_buffer();
    void take_tensor(const dl_tensor& t);

    py::object holder_;  ///< for DLPack: the capsule, whose destructor calls the deleter
    Py_buffer view_{};
    bool has_view_ = false;
};

}  // namespace carousel::python
