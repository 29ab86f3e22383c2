#pragma once
// One primitive of a glTF mesh as triangles, from the elements of its accessors. Internal to the glTF reader.

#include <initializer_list>
#include <optional>

#include "stages/geometry/gltf_document.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

// The elements of a glTF accessor, within their buffer. Internal to the glTF reader.

class gltf_accessor {
public:
    /// Opens the accessor that `from`.`key` names. Refuses types other than `types` ("SCALAR", "VEC3" ...),
    /// sparse accessors, and elements outside the buffer view.
    gltf_accessor(gltf_document& document, const gltf_value& from, const char* key,
                  std::initializer_list<std::string_view> types);

    [[nodiscard]] u64 count() const noexcept { return count_; }
    [[nodiscard]] u32 components() const noexcept { return components_; }
    /// Component `k` < components() of element `i` < count(); a normalised integer is returned as a number in
    /// -1..1 or 0..1. May be NaN.
    [[nodiscard]] f64 value(u64 i, u32 k) const;
    /// Element `i` < count() of a list of indices. Requires a call of require_indices() first.
    [[nodiscard]] u32 index(u64 i) const;
    /// Throws settings_error unless the elements are u8, u16 or u32.
    void require_indices(const gltf_value& from) const;

private:
    enum class component : u64 { i8 = 5120, u8 = 5121, i16 = 5122, u16 = 5123, u32 = 5125, f32 = 5126 };

    std::span<const std::byte> bytes_;
    component type_ = component::f32;
    u64 count_ = 0, stride_ = 0;
    u32 components_ = 1, size_ = 4;  ///< bytes per component
    bool normalized_ = false;
};

struct gltf_primitive {
    struct vertex {
        f64 position[3], normal[3];
        f32 texture[2];
    };
    std::vector<vertex> vertices;
    std::vector<u32> indices;  ///< three per triangle, each below vertices.size()
};

/// Reads a primitive. `texture_set`: the set of texture coordinates that the primitive's material uses.
/// Returns nothing for points and lines. Refuses indices beyond the positions, and refuses numbers that are
/// not finite. If the file has no normals, every triangle gets separate vertices.
[[nodiscard]] std::optional<gltf_primitive> read_primitive(gltf_document& document,
                                                           const gltf_value& primitive, u64 texture_set);

/// Adds the back of each triangle: its corners in reverse order, with opposite normals. Kernels draw fronts
/// only.
void add_backs(gltf_primitive& p);

/// Adds a primitive, transformed by `at`, to the mesh. `node`: the node that shows the primitive; errors name
/// it. Throws settings_error if a point exceeds the range of a float or the mesh becomes too large.
void append(mesh_data& mesh, const gltf_primitive& p, const affine& at, u32 surface, const gltf_value& node);

}  // namespace carousel::stages
