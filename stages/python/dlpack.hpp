#pragma once
// Exports of memory by DLPack: a capsule with or without a version, as the consumer requests it.

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "stages/python/element_types.hpp"

namespace carousel::python {

namespace py = pybind11;

/// Memory that is exported as an array.
struct exported_memory {
    void* data = nullptr;
    dl_device device{dl_cpu, 0};
    element_words words;
    std::vector<i64> shape, strides;  ///< strides in elements
    bool is_writable = true;
};

/// Throws buffer_error if the consumer, which supports DLPack up to `max_version` (None: without versions),
/// does not have the element type. `what` names the memory and the type; `instead` is the remedy.
void require_type(const element_words& words, const py::object& max_version, const std::string& what,
                  const std::string& instead);
/// Throws buffer_error if the consumer requests another device than `own`, or a copy.
void require_shared(const py::object& device, const py::object& copy, const py::tuple& own,
                    const std::string& what, const std::string& instead);
/// True if the consumer supports the flag for read-only memory.
[[nodiscard]] bool has_versions(const py::object& max_version);
/// Returns the capsule. `keeps` is released, under the GIL, when the consumer has released the array.
[[nodiscard]] py::capsule make_capsule(exported_memory what, std::shared_ptr<const void> keeps,
                                       const py::object& max_version);

/// Adds _dlpack_capsule(), by which the package exports memory of a space.
void bind_dlpack(py::module_& m);

}  // namespace carousel::python
