#pragma once
// A plane of a frame as a Python object: it has a name, an element type and a shape, and it shares its memory
// with the arrays that NumPy, torch or CuPy make from it. Used only under the GIL.
//
// - Planes in host memory support the buffer protocol (numpy.asarray) and DLPack. On a GPU: DLPack and
//   __cuda_array_interface__.
// - Inputs are read-only, unless their stage has requested to write to them. The buffer of an input is marked
// as read-only, and so is its DLPack tensor if the consumer requests version 1. A write despite these marks
//   faults the writing process, because the memory is mapped for reading.
// - A plane ends with its frame; see lease.hpp.

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "frame/frame_format.hpp"
#include "stages/python/lease.hpp"

namespace carousel::python {

namespace py = pybind11;

/// The exception carousel.FrameEnded: a frame, or a plane of it, was used after the frame had ended.
class frame_ended : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class plane_object {
public:
    plane_object(std::shared_ptr<lease> of, std::byte* data, const ring::plane& what, bool writable);
    ~plane_object();
    plane_object(const plane_object&) = delete;
    plane_object& operator=(const plane_object&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return plane_.name; }
    [[nodiscard]] std::string type() const { return ring::name_of(plane_.type); }
    [[nodiscard]] py::tuple shape() const;
    [[nodiscard]] py::tuple strides() const;  ///< bytes
    [[nodiscard]] u64 bytes() const { return plane_.bytes(); }
    [[nodiscard]] bool is_writable() const noexcept { return writable_; }
    [[nodiscard]] std::string device() const;  ///< "cpu", "cuda:0"
    [[nodiscard]] std::string describe() const;

    /// The buffer protocol. Returns false if a Python exception is set.
    [[nodiscard]] bool fill_buffer(PyObject* self, Py_buffer* view, int flags) const;
    [[nodiscard]] py::capsule to_dlpack(const py::object& stream, const py::object& max_version,
                                        const py::object& device, const py::object& copy) const;
    [[nodiscard]] py::tuple dlpack_device() const;
    [[nodiscard]] py::dict cuda_array_interface() const;
    /// Returns an independent copy in host memory.
    [[nodiscard]] std::shared_ptr<plane_object> to_host() const;
    /// Copies an array of any library into this plane; on a GPU the lease keeps the array until the frame is
    /// complete, unless the array's memory belongs to a plane. Throws type_error; value_error for another
    /// device, type or shape, or for strides that are not dense.
    void copy_from(const py::object& array) const;

    /// Sets the used extents of this frame's plane, along its first dimensions. Throws config_error, and
    /// std::runtime_error for a plane whose extents can't be set.
    void set_used(const std::vector<u64>& elements) const;
    /// Receives the used extents. This function is set only for an output of a frame that is being made.
    std::function<void(const std::vector<u64>&)> take_used;

    /// Returns the same memory as u8, for element types that a library does not support. An element of
    /// several bytes adds one more dimension.
    [[nodiscard]] std::shared_ptr<plane_object> as_bytes();

    /// True if the plane's __cuda_array_interface__ was read, so that an array may hold this object.
    [[nodiscard]] bool is_exported_by_cai() const noexcept { return exported_by_cai_; }
    /// True if the interface of the result of as_bytes() was read and that result is still referenced.
    [[nodiscard]] bool bytes_are_shared() const noexcept {
        return bytes_ && bytes_->exported_by_cai_ && bytes_.use_count() > 1;
    }

private:
    /// True if `data` is memory of a frame that has not ended.
    [[nodiscard]] static bool is_in_plane(const std::byte* data) noexcept;
    void check() const;
    [[nodiscard]] std::vector<i64> element_strides() const;
    [[nodiscard]] bool is_dense() const;

    std::shared_ptr<lease> lease_;
    std::byte* data_;
    ring::plane plane_;  ///< its strides filled in
    bool writable_;
    mutable bool exported_by_cai_ = false;
    std::shared_ptr<plane_object> bytes_;  ///< result of as_bytes(); null until as_bytes() is called for the
                                           ///< first time
};

void bind_plane(py::module_& m);

}  // namespace carousel::python
