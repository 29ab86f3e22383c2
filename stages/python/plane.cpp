#include "stages/python/plane.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "stages/python/dlpack.hpp"
#include "stages/python/element_types.hpp"
#include "stages/python/external_array.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {
namespace {

template <typename T>
py::tuple tuple_of(const std::vector<T>& values) {
    py::tuple t(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) t[k] = values[k];
    return t;
}

constexpr const char* its_bytes = "plane.bytes has the same memory as u8";

/// The data of an exported array: its extents, and a reference to the lease, which counts the array.
struct exported {
    std::shared_ptr<lease> of;
    std::vector<i64> shape, strides;
    // A port that was closed in the meantime gives its seat back when its last array is released, whichever
    // object holds the frame.
    ~exported() {
        if (--of->arrays == 0 && of->ended && !of->exported_by_cai) of->release();
    }
};

// Under the GIL. If the source of an enqueued copy is a plane of a current frame, the copy need not keep the
// source alive: every frame and every port ends only after the work that this process has enqueued.
std::set<const plane_object*>& planes_there() {
    static auto& all = *new std::set<const plane_object*>;  // planes may outlive static objects at exit
    return all;
}

}  // namespace

plane_object::plane_object(std::shared_ptr<lease> of, std::byte* data, const ring::plane& what, bool writable)
    : lease_(std::move(of)), data_(data), plane_(what), writable_(writable) {
    planes_there().insert(this);
    if (!plane_.strides.empty()) return;
    plane_.strides.assign(plane_.shape.size(), ring::element_bytes(plane_.type));
    for (std::size_t k = plane_.shape.size(); k-- > 1;)
        plane_.strides[k - 1] = plane_.strides[k] * plane_.shape[k];
}

plane_object::~plane_object() { planes_there().erase(this); }

bool plane_object::is_in_plane(const std::byte* data) noexcept {
    const std::less_equal<> not_after;
    return std::any_of(planes_there().begin(), planes_there().end(), [&](const plane_object* p) {
        return !p->lease_->ended && not_after(p->data_, data) && !not_after(p->data_ + p->bytes(), data);
    });
}

void plane_object::check() const {
    if (lease_->ended)
        throw frame_ended(
            fmt::format("plane \"{}\" of frame {} was used after its frame ended; frame.copy() keeps a frame",
                        plane_.name, lease_->frame_number));
}

py::tuple plane_object::shape() const { return tuple_of(plane_.shape); }
py::tuple plane_object::strides() const { return tuple_of(plane_.strides); }

std::string plane_object::device() const {
    return lease_->gpu < 0 ? "cpu" : fmt::format("cuda:{}", lease_->gpu);
}

std::string plane_object::describe() const {
    return fmt::format("<carousel.Plane \"{}\" {}[{}] on {} of frame {}{}{}>", plane_.name, type(),
                       fmt::join(plane_.shape, ", "), device(), lease_->frame_number,
                       writable_ ? "" : ", read-only", lease_->ended ? ", ended" : "");
}

std::shared_ptr<plane_object> plane_object::as_bytes() {
    check();
    if (bytes_) return bytes_;
    ring::plane same = plane_;
    same.type = ring::element::u8_;
    if (const u64 size = ring::element_bytes(plane_.type); size > 1) {
        same.shape.push_back(size);
        same.strides.push_back(1);
    }
    return bytes_ = std::make_shared<plane_object>(lease_, data_, same, writable_);
}

std::vector<i64> plane_object::element_strides() const {
    const u64 size = ring::element_bytes(plane_.type);
    std::vector<i64> out;
    for (const u64 stride : plane_.strides) {
        if (stride % size != 0)
            throw py::buffer_error(fmt::format("plane \"{}\": strides of ({}) bytes are not whole elements",
                                               plane_.name, fmt::join(plane_.strides, ", ")));
        out.push_back(static_cast<i64>(stride / size));
    }
    return out;
}

bool plane_object::is_dense() const {
    u64 dense = ring::element_bytes(plane_.type);
    for (std::size_t k = plane_.shape.size(); k-- > 0; dense *= plane_.shape[k])
        if (plane_.strides[k] != dense) return false;
    return true;
}

bool plane_object::fill_buffer(PyObject* self, Py_buffer* view, int flags) const {
    check();
    const element_words words = words_of(type(), ring::element_bytes(plane_.type));
    if (lease_->gpu >= 0)
        throw py::buffer_error(
            fmt::format("plane \"{}\" is on {}: use torch.from_dlpack(plane) or cupy.from_dlpack(plane), or "
                        "plane.cpu() for a copy in host memory",
                        plane_.name, device()));
    if (words.format == 0)
        throw py::buffer_error(fmt::format("plane \"{}\": Python's buffers have no {}; {}", plane_.name,
                                           type(),
                                           words.dl_minor == 0 ? "torch.from_dlpack(plane)" : its_bytes));
    if ((flags & PyBUF_WRITABLE) != 0 && !writable_)
        throw py::buffer_error(
            fmt::format("plane \"{}\" belongs to an input, so it is read-only", plane_.name));
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_dense())
        throw py::buffer_error(
            fmt::format("plane \"{}\" is not dense, and strides were not requested", plane_.name));
    lease_->take(plane_.name);
    auto* what = new exported{
        lease_, {plane_.shape.begin(), plane_.shape.end()}, {plane_.strides.begin(), plane_.strides.end()}};
    static const char formats[] = "B\0H\0I\0Q\0b\0h\0i\0q\0?\0e\0f\0d";
    const char* format = std::find(std::begin(formats), std::end(formats), words.format);
    view->buf = data_;
    view->obj = self;
    Py_INCREF(self);
    view->len = static_cast<Py_ssize_t>(ring::element_bytes(plane_.type));
    for (const u64 n : plane_.shape) view->len *= static_cast<Py_ssize_t>(n);
    view->itemsize = static_cast<Py_ssize_t>(ring::element_bytes(plane_.type));
    view->readonly = writable_ ? 0 : 1;
    view->ndim = static_cast<int>(plane_.shape.size());
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
    view->shape = (flags & PyBUF_ND) != 0 ? reinterpret_cast<Py_ssize_t*>(what->shape.data()) : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                        ? reinterpret_cast<Py_ssize_t*>(what->strides.data())
                        : nullptr;
    view->suboffsets = nullptr;
    view->internal = what;
    return true;
}

py::tuple plane_object::dlpack_device() const {
    if (lease_->gpu < 0) return py::make_tuple(dl_cpu, 0);
    return py::make_tuple(dl_cuda, lease_->gpu);
}

// The consumer's stream waits for the work that is now on this frame's stream. When the frame ends, the work
// on all streams is joined (lease::join).
py::capsule plane_object::to_dlpack(const py::object& stream, const py::object& max_version,
                                    const py::object& device, const py::object& copy) const {
    check();
    const std::string named = fmt::format("plane \"{}\"", plane_.name);
    require_shared(device, copy, dlpack_device(), fmt::format("{} on {}", named, this->device()),
                   "plane.cpu() makes a copy");
    const element_words words = words_of(type(), ring::element_bytes(plane_.type));
    require_type(words, max_version, fmt::format("{} of {}", named, type()), its_bytes);
    std::vector<i64> strides = element_strides();
    if (lease_->gpu >= 0) {
        const i64 consumers = stream.is_none() ? 1 : stream.cast<i64>();
        if (consumers == 0)
            throw py::value_error(
                "__dlpack__(stream=0) is ambiguous; use stream=1 for the legacy default stream");
        if (void* const consumer = reinterpret_cast<void*>(consumers);
            consumers > 0 && consumer != lease_->stream)
            follow(lease_->gpu, consumer, lease_->stream);
    }
    lease_->take(plane_.name);
    // Counted in the lease until the consumer has released the array.
    std::shared_ptr<const exported> keeps(new exported{lease_, {}, {}});
    return make_capsule({data_,
                         {lease_->gpu < 0 ? dl_cpu : dl_cuda, std::max(lease_->gpu, 0)},
                         words,
                         {plane_.shape.begin(), plane_.shape.end()},
                         std::move(strides),
                         writable_},
                        std::move(keeps), max_version);
}

// Uses version 3 of the interface, in which the consumer passes no stream: the consumer's work must be
// enqueued on the current stream, which is the frame's stream.
py::dict plane_object::cuda_array_interface() const {
    if (lease_->gpu < 0) throw py::attribute_error("__cuda_array_interface__: the plane is in host memory");
    check();
    const element_words words = words_of(type(), ring::element_bytes(plane_.type));
    if (words.numpy.empty())
        throw py::attribute_error("__cuda_array_interface__ has no type for " + type() + "; use DLPack");
    exported_by_cai_ = lease_->exported_by_cai = true;
    lease_->last_plane = plane_.name;
    py::dict d;
    d["shape"] = shape();
    d["typestr"] = words.numpy;
    d["data"] = py::make_tuple(reinterpret_cast<std::uintptr_t>(data_), !writable_);
    d["version"] = 3;
    d["strides"] = is_dense() ? py::object(py::none()) : py::object(strides());
    d["stream"] = reinterpret_cast<std::uintptr_t>(lease_->stream);
    return d;
}

// While the plane is read without the GIL, the lease counts this access as an array, so that no other thread
// can end the frame.
std::shared_ptr<plane_object> plane_object::to_host() const {
    check();
    const u64 bytes = plane_.bytes();
    auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    lease_->take(plane_.name);
    const exported read{lease_, {}, {}};
    {
        void* const stream = lease_->stream;
        const gil_released others;
        if (lease_->gpu < 0)
            std::memcpy(memory->data(), data_, bytes);
        else
            copy_to_host(lease_->gpu, memory->data(), data_, bytes, stream);
    }
    auto own = std::make_shared<lease>();
    own->frame_number = lease_->frame_number;
    own->memory = memory;
    return std::make_shared<plane_object>(std::move(own), memory->data(), plane_, true);
}

void plane_object::copy_from(const py::object& array) const {
    check();
    if (!writable_)
        throw py::type_error(
            fmt::format("plane \"{}\" belongs to an input, so it is read-only", plane_.name));
    const std::string into = fmt::format("plane \"{}\"", plane_.name);
    if (!is_dense()) throw py::value_error(into + " is not dense: make an array from it and write into that");
    external_array from(array, lease_->gpu, lease_->stream);
    const element_words words = words_of(type(), ring::element_bytes(plane_.type));
    const bool here = lease_->gpu < 0 ? from.device.type == dl_cpu
                                      : from.device.type == dl_cuda && from.device.id == lease_->gpu;
    if (!here)
        throw py::value_error(
            fmt::format("{} is on {}, the array on {}", into, device(), from.device_name()));
    if (from.type.code != words.dl.code || from.type.bits != words.dl.bits || from.type.lanes != 1)
        throw py::type_error(
            fmt::format("{} has elements of {}, but the array has elements of {}: convert the array first",
                        into, type(), from.type_name()));
    if (!std::equal(from.shape.begin(), from.shape.end(), plane_.shape.begin(), plane_.shape.end()))
        throw py::value_error(fmt::format("{} is [{}], the array [{}]", into, fmt::join(plane_.shape, ", "),
                                          fmt::join(from.shape, ", ")));
    if (!from.is_dense())
        throw py::value_error(
            fmt::format("the array for {} has strides of ({}) elements and is not dense; make it contiguous "
                        "(numpy.ascontiguousarray(x), x.contiguous())",
                        into, fmt::join(from.strides, ", ")));
    if (lease_->gpu < 0) {
        std::memcpy(data_, from.data, plane_.bytes());
        return;
    }
    copy_on_device(lease_->gpu, data_, from.data, plane_.bytes(), lease_->stream);
    if (!is_in_plane(from.data)) lease_->kept.push_back(from.keep());
}

void plane_object::set_used(const std::vector<u64>& elements) const {
    check();
    if (!take_used)
        throw std::runtime_error(fmt::format(
            "plane \"{}\": set_used() is only valid for an output plane, inside process()", plane_.name));
    take_used(elements);
}

namespace {

// NumPy calls this function after the plane has refused the buffer request. Without this function NumPy would
// make an array that contains the plane as one object, so this function reports the refusal.
py::object array_of(const py::object& self, const py::args& type, const py::kwargs&) {
    auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(self.ptr()));
    if (!view) throw py::error_already_set();
    return py::module_::import("numpy").attr("asarray")(view, *type);
}

extern "C" int plane_get_buffer(PyObject* self, Py_buffer* view, int flags) {
    view->obj = nullptr;
    try {
        return py::handle(self).cast<const plane_object&>().fill_buffer(self, view, flags) ? 0 : -1;
    } catch (const py::buffer_error& e) {
        PyErr_SetString(PyExc_BufferError, e.what());
    } catch (const frame_ended& e) {
        PyErr_SetString(py::module_::import("carousel._carousel").attr("FrameEnded").ptr(), e.what());
    } catch (const std::exception& e) {
        PyErr_SetString(PyExc_RuntimeError, e.what());
    }
    return -1;
}

extern "C" void plane_release_buffer(PyObject*, Py_buffer* view) {
    delete static_cast<exported*>(view->internal);
}

}  // namespace

void bind_plane(py::module_& m) {
    py::class_<plane_object, std::shared_ptr<plane_object>>(
        m, "Plane",
        "One array of a frame: numpy.asarray(plane), torch.from_dlpack(plane) and cupy.from_dlpack(plane) "
        "are the same memory. It ends with its frame and raises FrameEnded afterwards; delete every array "
        "made from it before process() returns.",
        py::custom_type_setup([](PyHeapTypeObject* type) {
            type->ht_type.tp_as_buffer = &type->as_buffer;
            type->as_buffer.bf_getbuffer = plane_get_buffer;
            type->as_buffer.bf_releasebuffer = plane_release_buffer;
        }))
        .def_property_readonly("name", &plane_object::name,
                               "The name of the plane in the frame's format, e.g. \"color\".")
        .def_property_readonly("dtype", &plane_object::type,
                               "The type of an element: \"u8\", \"f32\", \"bf16\", ...")
        .def_property_readonly(
            "shape", &plane_object::shape,
            "Elements of each dimension, the slowest first: (height, width, 4) for a picture.")
        .def_property_readonly("strides", &plane_object::strides,
                               "Bytes from one element to the next of each dimension.")
        .def_property_readonly("nbytes", &plane_object::bytes,
                               "Bytes of all elements, without the gaps of a plane that is not dense.")
        .def_property_readonly(
            "readonly", [](const plane_object& p) { return !p.is_writable(); },
            "True for a plane of an input.")
        .def_property_readonly("device", &plane_object::device,
                               "Where the memory is: \"cpu\", or \"cuda:0\" in this process's numbering.")
        .def_property_readonly("bytes", &plane_object::as_bytes,
                               "The same memory as a plane of u8, with one more dimension if an element has "
                               "several bytes: for types that a library does not support.")
        .def("cpu", &plane_object::to_host,
             "A copy in host memory, which stays valid. Waits for the GPU's work on the frame.")
        .def(
            "set_used",
            [](const plane_object& p, const py::args& elements) {
                p.set_used(
                    checked_cast<std::vector<u64>>(elements, "set_used()", "whole numbers, 0 or more"));
            },
            "For an output: the number of elements along its first dimensions that this frame uses. "
            "Downstream stages see a plane of that shape.")
        .def("copy_from", &plane_object::copy_from, py::arg("array"),
             "Copies a NumPy array or a tensor of the same device, type and shape into this plane; on a GPU "
             "in the order of the frame's stream. Raises TypeError or ValueError, with both sides, for any "
             "other array.")
        .def("__dlpack__", &plane_object::to_dlpack, py::kw_only(), py::arg("stream") = py::none(),
             py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
             py::arg("copy") = py::none())
        .def("__array__", &array_of)
        .def("__dlpack_device__", &plane_object::dlpack_device)
        .def_property_readonly("__cuda_array_interface__", &plane_object::cuda_array_interface)
        .def("__repr__", &plane_object::describe);
}

}  // namespace carousel::python
