#pragma once
// Compressed parts of glTF files: EXT_meshopt_compression by libmeshoptimizer and KHR_draco_mesh_compression
// by libdraco, if the programs were built with these libraries. Internal to the glTF reader.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/assets/gltf_document.hpp"

namespace carousel::stages::gltf_compression {

#if CAROUSEL_WITH_MESHOPT
inline constexpr bool has_meshopt = true;
#else
inline constexpr bool has_meshopt = false;
#endif
#if CAROUSEL_WITH_DRACO
inline constexpr bool has_draco = true;
#else
inline constexpr bool has_draco = false;
#endif

/// The name of the library that an extension needs and this build lacks; null if it lacks none.
[[nodiscard]] const char* missing_library(std::string_view extension) noexcept;

/// Limit of the decompressed bytes of one buffer view, because a few bytes of a file may name any size.
inline constexpr u64 most_decompressed = u64{1} << 30U;

/// Decompresses a buffer view. `part` is its extension, `bytes` are the compressed bytes. Throws
/// settings_error.
[[nodiscard]] std::vector<std::byte> decompress_view(const gltf_value& part,
                                                     std::span<const std::byte> bytes);

/// An attribute that a primitive uses, with the meaning of its integers that the glTF accessor defines.
struct draco_request {
    std::string name;
    u64 component_type = 5126;
    bool normalized = false;
};

/// An attribute of a mesh that Draco has decompressed.
struct draco_attribute {
    u32 components = 0;
    std::vector<f32> values;  ///< components numbers per vertex
};

struct draco_mesh {
    u64 vertex_count = 0;
    std::vector<u32> indices;  ///< three per triangle, each below vertex_count
};

/// Decompresses the mesh of a primitive. `part` is its extension; for each of `wanted`, `attributes` receives
/// one entry, empty for those that the mesh lacks. Charges the document. Throws settings_error.
[[nodiscard]] draco_mesh decompress_draco(gltf_document& document, const gltf_value& part,
                                          std::span<const std::byte> bytes,
                                          const std::vector<draco_request>& wanted,
                                          std::vector<draco_attribute>& attributes);

}  // namespace carousel::stages::gltf_compression
