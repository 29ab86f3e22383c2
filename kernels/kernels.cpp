// The host API: checks arguments and forwards them to the queue's backend.

#include "kernels/kernels.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "kernels/body/fixed_math.hpp"
#include "kernels/cpu/entries.hpp"
#include "kernels/cuda/entries.hpp"
#include "kernels/shape_net.hpp"

namespace carousel::kernels {

const f32 body::unknown_zero = 0.0F;

namespace {

void check_size(u32 width, u32 height) {
    if (width == 0 || height == 0 || width > max_extent || height > max_extent) {
        throw config_error(
            fmt::format("a picture of {}x{} pixels can't be rendered; each side must have 1 to {}", width,
                        height, max_extent));
    }
}

void check_samples(u32 width, u32 height, u32 samples) {
    check_size(width, height);
    if (samples != 1 && samples != 4)
        throw config_error(fmt::format("{} samples per pixel can't be rendered; expected 1 or 4", samples));
    if (samples == 4 && (width > max_extent / 2 || height > max_extent / 2))
        throw config_error(
            fmt::format("a picture of {}x{} pixels can't be rendered with 4 samples per pixel; each side may "
                        "have up to {}",
                        width, height, max_extent / 2));
}

void check_mesh(const mesh_layout& mesh, u32 max_instances) {
    const mesh_counts& c = mesh.counts;
    const u64 triangles = (u64{c.triangle_count} + c.masked_count + c.blended_count) * max_instances;
    if (c.triangle_count == 0 || max_instances == 0 || c.vertex_count == 0)
        throw config_error("only a mesh with at least one triangle and one instance can be rendered");
    // Two numbers must fit into 32 bits: the id of a triangle among the triangles of all instances, and a
    // position in the index array (3 per triangle; signed).
    if (triangles >= 0xffffffffULL || c.triangle_count > 1U << 29 || c.vertex_count > 1U << 29) {
        throw config_error(
            fmt::format("{} instances of {} triangles and {} vertices are too many; the limits are {} "
                        "triangles and {} vertices per mesh, and {} triangles in all",
                        max_instances, c.triangle_count, c.vertex_count, 1U << 29, 1U << 29, 0xfffffffeU));
    }
    if (c.texture_width == 0 || c.texture_height == 0 || c.texture_width > max_texture_extent ||
        c.texture_height > max_texture_extent) {
        throw config_error(fmt::format("a texture of {}x{} pixels can't be used; each side may have 1 to {}",
                                       c.texture_width, c.texture_height, max_texture_extent));
    }
    if (c.texture_levels == 0 || c.texture_levels > mip_levels(c.texture_width, c.texture_height) ||
        c.texture_count == 0 || c.texture_count > max_textures || texture_texels(c) == 0 ||
        texture_texels(c) > max_texels) {
        throw config_error(fmt::format(
            "{} textures with {} texels in all can't be used (the first has {}x{} pixels and {} mip levels); "
            "expected 1 to {} textures with at most {} texels, including all mip levels",
            c.texture_count, texture_texels(c), c.texture_width, c.texture_height, c.texture_levels,
            max_textures, max_texels));
    }
    if (c.material_count != 0 && c.material_count != c.texture_count)
        throw config_error(fmt::format("{} materials can't be used with {} textures; expected one for each",
                                       c.material_count, c.texture_count));
}

#if CAROUSEL_WITH_CUDA
#define CAROUSEL_DISPATCH(function, ...) \
    return q.kind() == device::device_kind::cuda ? cuda::function(__VA_ARGS__) : cpu::function(__VA_ARGS__)
#else
#define CAROUSEL_DISPATCH(function, ...) return cpu::function(__VA_ARGS__)
#endif

}  // namespace

void generate_mesh(device::queue& q, const generate_mesh_args& args) {
    (void)procedural_counts(args.shape, args.triangles);  // throws for invalid arguments
    CAROUSEL_DISPATCH(generate_mesh, q, args);
}

void generate_texture(device::queue& q, const generate_texture_args& args) {
    check_mesh(args.layout, 1);
    CAROUSEL_DISPATCH(generate_texture, q, args);
}

void bound_clusters(device::queue& q, const bound_clusters_args& args) {
    check_mesh(args.layout, 1);
    CAROUSEL_DISPATCH(bound_clusters, q, args);
}

void animate_instances(device::queue& q, const animate_args& args) {
    if (args.instance_count == 0)
        throw config_error("no instance of the mesh was requested; at least one is needed");
    CAROUSEL_DISPATCH(animate_instances, q, args);
}

void vertex_stage(device::queue& q, const vertex_stage_args& args) {
    check_size(args.width, args.height);
    check_mesh(args.mesh, args.out.max_instances);
    CAROUSEL_DISPATCH(vertex_stage, q, args);
}

u64 fragment_scratch_bytes(device::device_kind kind, u32 width, u32 height, u32 layers, u32 samples) {
    check_samples(width, height, samples);
#if CAROUSEL_WITH_CUDA
    if (kind == device::device_kind::cuda)
        return cuda::fragment_scratch_bytes(width, height, layers, samples);
#endif
    (void)kind, (void)layers;
    const u32 scale = samples == 4 ? 2 : 1;
    return cpu::fragment_scratch_bytes(scale * width, scale * height);
}

void fragment_stage(device::queue& q, const fragment_stage_args& args) {
    check_mesh(args.mesh, args.in.max_instances);
    const u64 needed =
        fragment_scratch_bytes(q.kind(), args.width, args.height, args.surface.layer_count, args.samples);
    if (args.scratch == nullptr || args.scratch_bytes < needed) {
        throw config_error(
            fmt::format("the fragment stage was given {} bytes of scratch for {}x{} pixels; it needs {}",
                        args.scratch_bytes, args.width, args.height, needed));
    }
    if (args.color == nullptr && args.surface.depth == nullptr)
        throw config_error("the fragment stage was given neither a picture nor a G-buffer to write");
    if (args.samples == 4 && (args.color != nullptr || args.surface.albedo == nullptr ||
                              args.surface.coverage == nullptr || args.surface.samples == nullptr))
        throw config_error("4 samples per pixel need a G-buffer with the planes coverage and samples");
    if (args.look.material_count == 0 || args.look.material_count > max_instance_materials)
        throw config_error(fmt::format("{} materials can't be used; expected 1 to {}",
                                       args.look.material_count, max_instance_materials));
    if (args.surface.layers != nullptr &&
        (args.surface.layer_count == 0 || args.surface.layer_count > max_layers))
        throw config_error(fmt::format("{} transparent layers per pixel can't be kept; expected 1 to {}",
                                       args.surface.layer_count, max_layers));
    CAROUSEL_DISPATCH(fragment_stage, q, args);
}

void sharpen(device::queue& q, const sharpen_args& args) {
    check_size(args.width, args.height);
    if (args.strength > 1024)
        throw config_error(
            fmt::format("a sharpening strength of {} is too high; the maximum is 1024", args.strength));
    CAROUSEL_DISPATCH(sharpen, q, args);
}

u64 hash_scratch_bytes(device::device_kind kind) noexcept {
#if CAROUSEL_WITH_CUDA
    if (kind == device::device_kind::cuda) return cuda::hash_scratch_bytes();
#endif
    (void)kind;
    return 0;
}

void hash_plane(device::queue& q, const hash_args& args) {
    if (args.rows > 1 && args.pitch < args.row_bytes) {
        throw config_error(
            fmt::format("rows of {} bytes can't be hashed with a pitch of {}: they would overlap",
                        args.row_bytes, args.pitch));
    }
    if (args.out == nullptr || (args.data == nullptr && args.rows * args.row_bytes > 0))
        throw config_error("a plane's hash was requested without the plane, or without memory for the hash");
    const u64 needed = hash_scratch_bytes(q.kind());
    if (needed > 0 && (args.scratch == nullptr || args.scratch_bytes < needed))
        throw config_error(fmt::format("a plane's hash was given {} bytes of scratch; it needs {}",
                                       args.scratch_bytes, needed));
    CAROUSEL_DISPATCH(hash_plane, q, args);
}

// Checks the arguments and forwards them to the queue's backend.

void run_shape_net(device::queue& q, const shape_net_args& args) {
    if (args.batch == 0) throw config_error("no picture was given to the network; at least one is needed");
#if CAROUSEL_WITH_CUDA
    if (q.kind() == device::device_kind::cuda) return cuda::run_shape_net(q, args);
#endif
    cpu::run_shape_net(q, args);
}

}  // namespace carousel::kernels
