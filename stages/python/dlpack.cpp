#include "stages/python/dlpack.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <utility>

#include "stages/python/gil.hpp"

namespace carousel::python {
namespace {

struct exported_tensor {
    exported_memory what;
    std::shared_ptr<const void> keeps;
    dl_managed plain{};
    dl_managed_versioned versioned{};
};

// Deleters may be called by any thread, with or without the GIL, and even after the interpreter has ended.
void release(exported_tensor* t) {
    if (interpreter_is_closed()) return;
    const py::gil_scoped_acquire gil;
    delete t;
}

void release_unused(PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
        auto* m = static_cast<dl_managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
        m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
        auto* m = static_cast<dl_managed_versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
        m->deleter(m);
    }
}

std::pair<int, int> version_in(const py::object& max_version) {
    if (max_version.is_none()) return {0, 0};
    const auto version =
        checked_cast<std::pair<int, int>>(max_version, "max_version", "a tuple of two whole numbers");
    return version;
}

/// Memory of a space. `keeps` is counted as an export of its block as long as it exists.
py::capsule capsule_of(const py::object& keeps, std::uintptr_t address, std::vector<i64> shape,
                       const std::string& type, u64 element_bytes, int gpu, bool readonly,
                       const py::object& max_version) {
    std::vector<i64> strides(shape.size(), 1);
    for (std::size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
    exported_memory what{reinterpret_cast<void*>(address),
                         {gpu < 0 ? dl_cpu : dl_cuda, std::max(gpu, 0)},
                         words_of(type, element_bytes),
                         std::move(shape),
                         std::move(strides),
                         !readonly};
    require_type(what.words, max_version, type, "export it as \"u8\", and view the array as its type");
    if (readonly && !has_versions(max_version))
        throw py::buffer_error(
            "the memory is read-only, which a consumer of DLPack before 1.0 does not know: use array() or "
            "tensor()");
    return make_capsule(std::move(what), std::make_shared<const py::object>(keeps), max_version);
}

}  // namespace

bool has_versions(const py::object& max_version) { return version_in(max_version).first >= 1; }

void require_type(const element_words& words, const py::object& max_version, const std::string& what,
                  const std::string& instead) {
    const std::pair<int, int> first{words.dl_minor == 0 ? 0 : 1, static_cast<int>(words.dl_minor)};
    if (words.dl.bits != 0 && version_in(max_version) >= first) return;
    throw py::buffer_error(fmt::format(
        "{}: DLPack has it from version 1.1 on, which the consumer does not request; {}", what, instead));
}

void require_shared(const py::object& device, const py::object& copy, const py::tuple& own,
                    const std::string& what, const std::string& instead) {
    if (!device.is_none() && !own.equal(device))
        throw py::buffer_error(fmt::format("{} can't be moved to another device; {}", what, instead));
    if (!copy.is_none() && copy.cast<bool>())
        throw py::buffer_error(
            fmt::format("{} can only be shared, not copied; copy the resulting array", what));
}

py::capsule make_capsule(exported_memory what, std::shared_ptr<const void> keeps,
                         const py::object& max_version) {
    auto* t = new exported_tensor{std::move(what), std::move(keeps), {}, {}};
    dl_tensor tensor{t->what.data,
                     t->what.device,
                     static_cast<std::int32_t>(t->what.shape.size()),
                     t->what.words.dl,
                     t->what.shape.data(),
                     t->what.strides.data(),
                     0};
    if (has_versions(max_version)) {
        t->versioned = {{1, t->what.words.dl_minor},
                        t,
                        [](dl_managed_versioned* m) { release(static_cast<exported_tensor*>(m->owner)); },
                        t->what.is_writable ? 0 : dl_read_only,
                        tensor};
        return py::reinterpret_steal<py::capsule>(
            PyCapsule_New(&t->versioned, "dltensor_versioned", release_unused));
    }
    t->plain = {tensor, t, [](dl_managed* m) { release(static_cast<exported_tensor*>(m->owner)); }};
    return py::reinterpret_steal<py::capsule>(PyCapsule_New(&t->plain, "dltensor", release_unused));
}

void bind_dlpack(py::module_& m) { m.def("_dlpack_capsule", &capsule_of); }

}  // namespace carousel::python
