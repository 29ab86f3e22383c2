#pragma once
// Values that the host computes once per asset: the counts of a procedural mesh, and mip chains.

#include "core/types.hpp"
#include "kernels/body/mesh.hpp"
#include "kernels/kernels.hpp"

namespace carousel::kernels {

// Counts of a procedural mesh from its shape and the requested number of triangles; shared by both backends.

struct procedural_mesh {
    mesh_counts counts;
    body::shape_grid grid;
};

/// Throws config_error above 2^29 triangles.
[[nodiscard]] procedural_mesh describe_procedural(mesh_shape shape, u32 triangles);

// Mip chains, built once when a texture is loaded, on the host.

/// Fills the levels after level 0 of a texture: `texels` contains texture_texels(width, height, levels) RGBA
/// words, one level after another. A texel of a level is the mean of the texels that it covers in the
/// previous level. The mean is computed in linear light and weighted by the covered area. Each side is halved
/// and rounded down. If a side is odd, a texel therefore covers parts of three texels along it. Alpha values
/// are averaged without conversion. The arithmetic is in integers: linear values have 16 bits, sums have 64
/// bits and are rounded to nearest, and the result is converted back to the nearest 8-bit code.
void build_mip_chain(u32* texels, u32 width, u32 height, u32 levels);
/// The same for numbers that are not colours (normals, roughness): all channels are averaged without
/// conversion.
void build_linear_mip_chain(u32* texels, u32 width, u32 height, u32 levels);

/// Multiplies texels by a colour (linear, each channel limited to 0..1), in the same arithmetic. A factor of
/// 1 changes nothing.
void tint_texels(u32* texels, u64 count, const f32 (&factor)[3]);

}  // namespace carousel::kernels
