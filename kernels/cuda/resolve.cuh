#pragma once
// Shades each pixel once, from its key. Included only by fragment_stage.cu.

#include "kernels/body/mip.hpp"
#include "kernels/body/setup.hpp"
#include "kernels/body/shade.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/kernels.hpp"

namespace carousel::kernels::cuda {
namespace {

using namespace body;  // NOLINT: the file is built from these functions

__device__ const srgb_tables tables = make_srgb_tables();

struct resolve_args {
    mesh_view mesh;
    const instance_record* instances;
    const unsigned long long* keys;
    shading shade;
    u32 width, height;
    u32* color;
};

struct texture_values {
    u32 channel[3];  ///< 0..1020
};

/// The four filtered texels of a footprint in a texture or level that begins at texel `begin`.
__device__ __forceinline__ texture_values take_texels(const resolve_args& a, const texel_footprint& f,
                                                      u32 begin, u32 width, u32 last) {
    const u32* const texels = reinterpret_cast<const u32*>(a.mesh.texture);
    const u32 t00 = texels[min_(begin + f.y0 * width + f.x0, last)],
              t10 = texels[min_(begin + f.y0 * width + f.x1, last)];
    const u32 t01 = texels[min_(begin + f.y1 * width + f.x0, last)],
              t11 = texels[min_(begin + f.y1 * width + f.x1, last)];
    texture_values out;
#pragma unroll
    for (u32 k = 0; k < 3; ++k)
        out.channel[k] = filtered(t00, t10, t01, t11, 8 * k, f.fraction_x, f.fraction_y);
    return out;
}

/// For one texture without mip levels. `rest` contains, for each corner, the normal's y and z and the texture
/// coordinates u and v.
__device__ __forceinline__ texture_values plain_texture(const resolve_args& a, const barycentrics& b,
                                                        const float4 (&rest)[3]) {
    const u32 width = a.shade.texture_width;
    const texel_footprint f =
        footprint(blend(b, rest[0].z, rest[1].z, rest[2].z), blend(b, rest[0].w, rest[1].w, rest[2].w), width,
                  a.shade.texture_height);
    return take_texels(a, f, 0, width, ~0U);
}

/// For mip levels or several textures: executes the steps of body/mip.hpp. `record` describes the texture of
/// the pixel's triangle.
__device__ __forceinline__ texture_values mapped_texture(const resolve_args& a, const texture_record& record,
                                                         const barycentrics& b, const weight_slopes& s,
                                                         const float4 (&rest)[3]) {
    const u32 width = bounded_side(record.width), height = bounded_side(record.height),
              levels = bounded_levels(record.levels);
    const moving u = move(b, s, rest[0].z, rest[1].z, rest[2].z),
                 v = move(b, s, rest[0].w, rest[1].w, rest[2].w);
    const u32 level = mip_level(u, v, width, height, levels);
    texture_values out;
#pragma unroll
    for (u32 coarser = 0; coarser < 2; ++coarser) {
        const u32 at = min_((level >> 8) + coarser, levels - 1U);
        const u32 columns = level_side(width, at);
        const texel_footprint f = footprint(u.value, v.value, columns, level_side(height, at));
        const texture_values found = take_texels(a, f, record.begin[at], columns, a.shade.texel_count - 1U);
#pragma unroll
        for (u32 k = 0; k < 3; ++k)
            out.channel[k] =
                coarser == 0 ? found.channel[k] : between(out.channel[k], found.channel[k], level & 255U);
    }
    return out;
}

/// Returns the lit colour or the normal of a pixel's triangle. The steps are the same as in the rows of the
/// CPU backend.
template <bool mapped>
__device__ __forceinline__ u32 shade_pixel(const resolve_args& a, u32 id, u32 x, u32 y) {
    const u32 instance = id / a.mesh.counts.triangle_count,
              triangle = id - instance * a.mesh.counts.triangle_count;
    const instance_record& record = a.instances[instance];
    u32 index[3];
    clip_vertex c[3];
    f32 normal_x[3];
    float4 rest[3];  // y and z of the normal, u and v of the texture
#pragma unroll
    for (u32 k = 0; k < 3; ++k) {
        const u32 i = a.mesh.indices[u64{triangle} * 3 + k];
        index[k] = i < a.mesh.counts.vertex_count ? i : 0U;
        const float4* const vertex = reinterpret_cast<const float4*>(a.mesh.vertices + index[k]);
        const float4 first = vertex[0];
        rest[k] = vertex[1];
        c[k] = to_clip(record.clip, {first.x, first.y, first.z});
        normal_x[k] = first.w;
    }
    const barycentrics b = barycentrics_at(centre_x(a.shade, x), centre_y(a.shade, y), c[0], c[1], c[2]);
    const vec3 n = normalised(turn(record.model, {blend(b, normal_x[0], normal_x[1], normal_x[2]),
                                                  blend(b, rest[0].x, rest[1].x, rest[2].x),
                                                  blend(b, rest[0].y, rest[1].y, rest[2].y)}));
    const bool wire = a.shade.wireframe != 0;
    bool edge = false;
    if (wire) {
        const f32 px = centre_x(a.shade, x), py = centre_y(a.shade, y);
#pragma unroll
        for (u32 k = 0; k < 3; ++k)
            edge |= near_edge(px, py, a.shade.scale_x, a.shade.scale_y, c[k], c[(k + 1) % 3]);
    }
    if (a.shade.mode == 1) return wire ? shade_wire(edge, shade_normal(n)) : shade_normal(n);
    texture_values values;
    if constexpr (mapped) {
        const weight_slopes s = slopes_at(centre_x(a.shade, x), centre_y(a.shade, y), a.shade.scale_x,
                                          a.shade.scale_y, c[0], c[1], c[2]);
        const u32 textures = a.mesh.counts.texture_count;
        const texture_record& record =
            textures > 1 ? a.mesh.texture_records[min_(a.mesh.texture_numbers[index[0]], textures - 1U)]
                         : a.shade.texture;
        values = mapped_texture(a, record, b, s, rest);
    } else {
        values = plain_texture(a, b, rest);
    }
    const f32 light = lambert(a.shade, n);
    u32 color = 0xff000000U;
#pragma unroll
    for (u32 k = 0; k < 3; ++k)
        color |= static_cast<u32>(tables.encode[encode_index(tables.decode[values.channel[k]] * light)])
                 << (8 * k);
    return wire ? shade_wire(edge, color) : color;
}

template <bool mapped>
__global__ void __launch_bounds__(256) resolve(const __grid_constant__ resolve_args a) {
    const u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    wait_for_last();
    if (x >= a.width || y >= a.height) return;
    const u64 at = u64{y} * a.width + x;
    const u64 key = a.keys[at];
    const u32 id = static_cast<u32>(key);
    u32 color = 0;
    if (key == empty_key) {
        color = background(x, y, a.height);
    } else if (a.shade.mode == 2) {
        color = shade_id(id);
    } else if (a.shade.mode == 3) {
        color = shade_depth(float_of(~static_cast<u32>(key >> 32)));
    } else {
        color = shade_pixel<mapped>(a, id, x, y);
    }
    a.color[at] = color;
}

}  // namespace
}  // namespace carousel::kernels::cuda
