#include "stages/scene/mesh_formats.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {
namespace {

ring::element element_of(kernels::scalar type) {
    switch (type) {
        case kernels::scalar::u8_:
            return ring::element::u8_;
        case kernels::scalar::u32_:
            return ring::element::u32_;
        case kernels::scalar::i32_:
            return ring::element::i32_;
        case kernels::scalar::f32_:
            return ring::element::f32_;
    }
    CAROUSEL_ASSERT(!"a scalar that kernels don't have");
    return ring::element::u8_;
}

ring::frame_format make_format(const char* type, const std::vector<kernels::plane_spec>& planes,
                               const kernels::mesh_counts& mesh, const start_view& view) {
    ring::frame_format format{type, {}, {}};
    for (const auto& p : planes) {
        format.planes.push_back({p.name, element_of(p.type), p.shape, {}, 0});
    }
    format.constants = {{"vertices", mesh.vertex_count},
                        {"triangles", mesh.triangle_count},
                        {"texture_width", mesh.texture_width},
                        {"texture_height", mesh.texture_height},
                        {"texture_levels", mesh.texture_levels},
                        {"textures", mesh.texture_count},
                        {"texels", static_cast<f64>(kernels::texture_texels(mesh))}};
    if (mesh.material_count > 0) {
        format.constants["materials"] = mesh.material_count;
        format.constants["maps"] = mesh.map_count;
        format.constants["map_texels"] = mesh.map_texels;
        format.constants["masked"] = mesh.masked_count;
        format.constants["blended"] = mesh.blended_count;
        format.constants["lights"] = mesh.light_count;
    }
    return with_view(std::move(format), view);
}

/// Returns a constant that must be an integer from `low` to `high`. Throws config_error otherwise.
u32 constant_of(const configuration& with, const char* name, f64 high, f64 low = 1) {
    const input_description& input = with.inputs.front();
    const auto at = input.format.constants.find(name);
    if (at == input.format.constants.end() || !(at->second >= low && at->second <= high) ||
        at->second != std::floor(at->second)) {
        throw config_error(
            fmt::format("stage \"{}\" can't read what stage \"{}\" writes: the constant \"{}\" must be a "
                        "whole number from {} to {}. "
                        "Offered: {}.",
                        with.stage, input.stage, name, low, high, input.format.describe()));
    }
    return static_cast<u32>(at->second);
}

/// Of triangles: samples per pixel, if there are several.
constexpr const char* samples_constant = "samples";

struct motion_constant {
    const char* name;
    u32 kernels::motion_counts::*count;
};
constexpr motion_constant motion_constants[] = {{"motion_nodes", &kernels::motion_counts::nodes},
                                                {"motion_channels", &kernels::motion_counts::channels},
                                                {"motion_keys", &kernels::motion_counts::keys},
                                                {"motion_matrices", &kernels::motion_counts::matrices},
                                                {"motion_weights", &kernels::motion_counts::weights},
                                                {"motion_influences", &kernels::motion_counts::influences},
                                                {"motion_deltas", &kernels::motion_counts::deltas}};

/// The counts of a moving mesh; all 0 if the format has none of them.
kernels::motion_counts motion_of(const configuration& with) {
    kernels::motion_counts counts;
    if (with.inputs.front().format.constants.contains("motion_matrices"))
        for (const motion_constant& c : motion_constants)
            counts.*c.count = constant_of(with, c.name, UINT32_MAX, 0);
    return counts;
}

/// Returns the expected format of an input whose parts of a mesh are known.
using make_expected = ring::frame_format (*)(const kernels::mesh_counts&, u32, const start_view&,
                                             const kernels::motion_counts&, bool, u32);

ring::frame_format expected_scene(const kernels::mesh_counts& mesh, u32 max_instances, const start_view& view,
                                  const kernels::motion_counts& motion, bool, u32) {
    return scene_format(mesh, max_instances, view, motion);
}
ring::frame_format expected_triangles(const kernels::mesh_counts& mesh, u32 max_instances,
                                      const start_view& view, const kernels::motion_counts&, bool moves,
                                      u32 samples) {
    return triangles_format(mesh, max_instances, view, moves, samples);
}

/// `instance_plane`: the plane whose first extent is the number of instances.
mesh_input require_mesh(const configuration& with, make_expected expected, const char* instance_plane,
                        std::string_view what) {
    const input_description& input = require_one_input(with, what);
    const kernels::mesh_counts any{1, 1, 1, 1};
    if (const auto wanted = expected(any, 1, false, {}, false, 1); input.format.type != wanted.type)
        ring::require_format(input.format, wanted, with.stage, input.stage);
    kernels::mesh_counts counts;
    counts.vertex_count = constant_of(with, "vertices", UINT32_MAX);
    counts.triangle_count = constant_of(with, "triangles", UINT32_MAX);
    counts.texture_width = constant_of(with, "texture_width", kernels::max_texture_extent);
    counts.texture_height = constant_of(with, "texture_height", kernels::max_texture_extent);
    counts.texture_levels =
        constant_of(with, "texture_levels", kernels::mip_levels(counts.texture_width, counts.texture_height));
    counts.texture_count = constant_of(with, "textures", kernels::max_textures);
    const u32 texels = constant_of(with, "texels", static_cast<f64>(kernels::max_texels));
    counts.texel_count = counts.texture_count > 1 ? texels : 0;
    if (input.format.constants.contains("materials")) {
        counts.material_count = constant_of(with, "materials", kernels::max_textures);
        counts.map_count = constant_of(with, "maps", UINT32_MAX, 0);
        counts.map_texels = constant_of(with, "map_texels", static_cast<f64>(kernels::max_texels), 0);
        counts.masked_count = constant_of(with, "masked", UINT32_MAX, 0);
        counts.blended_count = constant_of(with, "blended", UINT32_MAX, 0);
        counts.light_count = constant_of(with, "lights", kernels::max_lights, 0);
    }
    const ring::plane* instances = input.format.find(instance_plane);
    const u64 max_instances = instances != nullptr && !instances->shape.empty() ? instances->shape[0] : 1;
    const start_view view = view_of(input.format);
    const kernels::motion_counts motion = motion_of(with);
    const bool moves = motion.matrices > 0 || input.format.find("positions") != nullptr;
    const u32 samples = input.format.constants.contains(samples_constant) ? 4 : 1;
    const auto wanted = expected(counts, static_cast<u32>(max_instances), view, motion, moves, samples);
    ring::require_format(input.format, wanted, with.stage, input.stage);
    for (std::size_t i = 0; i < wanted.planes.size(); ++i) {
        if (input.format.planes[i].name != wanted.planes[i].name) {
            throw config_error(
                fmt::format("stage \"{}\" can't read what stage \"{}\" writes: the planes are in another "
                            "order. Offered: {}. "
                            "Expected: {}.",
                            with.stage, input.stage, input.format.describe(), wanted.describe()));
        }
    }
    return {kernels::lay_out_mesh(counts),
            static_cast<u32>(max_instances),
            view,
            kernels::lay_out_motion(motion, counts.vertex_count),
            moves,
            samples};
}

}  // namespace

ring::frame_format scene_format(const kernels::mesh_counts& mesh, u32 max_instances, const start_view& view,
                                const kernels::motion_counts& motion) {
    auto format = make_format(kernels::scene_format, kernels::scene_planes(max_instances), mesh, view);
    if (motion.matrices == 0) return format;
    format.planes.push_back({"pose", ring::element::f32_, {motion.matrices, 12}, {}, 0});
    format.planes.push_back({"weights", ring::element::f32_, {std::max(motion.weights, 1U)}, {}, 0});
    for (const motion_constant& c : motion_constants) format.constants[c.name] = motion.*c.count;
    return format;
}

ring::frame_format triangles_format(const kernels::mesh_counts& mesh, u32 max_instances,
                                    const start_view& view, bool moves, u32 samples) {
    auto format =
        make_format(kernels::triangle_format, kernels::triangle_planes(mesh, max_instances), mesh, view);
    if (samples > 1) format.constants[samples_constant] = samples;
    if (!moves) return format;
    format.planes.push_back({"positions", ring::element::f32_, {mesh.vertex_count, 3}, {}, 0});
    format.planes.push_back({"vertices", ring::element::f32_, {mesh.vertex_count, 8}, {}, 0});
    return format;
}

mesh_input require_scene(const configuration& with) {
    return require_mesh(with, expected_scene, "models", "a scene (from geometry)");
}

mesh_input require_triangles(const configuration& with) {
    return require_mesh(with, expected_triangles, "instances", "triangles (from vertex)");
}

void require_limits(const configuration& with, const mesh_input& mesh) {
    if (with.width < 1 || with.height < 1 || with.width > kernels::max_extent ||
        with.height > kernels::max_extent) {
        throw config_error(fmt::format("stage \"{}\": size = [{}, {}]: each side must be from 1 to {} pixels",
                                       with.stage, with.width, with.height, kernels::max_extent));
    }
    const kernels::mesh_counts& counts = mesh.layout.counts;
    const u64 triangles =
        (u64{counts.triangle_count} + counts.masked_count + counts.blended_count) * mesh.max_instances;
    if (triangles >= UINT32_MAX) {
        throw config_error(
            fmt::format("stage \"{}\": {} instances of a mesh of {} triangles and {} vertices make {} "
                        "triangles per frame; the limit is {} (lower triangles or copies)",
                        with.stage, mesh.max_instances, mesh.layout.counts.triangle_count,
                        mesh.layout.counts.vertex_count, triangles, UINT32_MAX - 1));
    }
}

std::vector<std::string> mesh_input::assets() const {
    return motion.moves() ? std::vector<std::string>{mesh_asset, motion_asset}
                          : std::vector<std::string>{mesh_asset};
}

namespace {

const std::byte* map_asset(environment& env, const char* asset, u64 bytes) {
    const std::span<const std::byte> memory = env.asset(asset);
    if (memory.size() < bytes) {
        throw shm_error(
            fmt::format("the asset \"{}\" has {} bytes, but the mesh of the input needs {}: check that all "
                        "stages are from one build",
                        asset, memory.size(), bytes));
    }
    return memory.data();
}

}  // namespace

const std::byte* map_mesh(environment& env, const mesh_input& mesh) {
    return map_asset(env, mesh_asset, mesh.layout.bytes);
}

const std::byte* map_motion(environment& env, const mesh_input& mesh) {
    return mesh.motion.moves() ? map_asset(env, motion_asset, mesh.motion.bytes) : nullptr;
}

std::unique_ptr<device::mapping> allocate_bounds(environment& env, const mesh_input& mesh) {
    if (!mesh.moves) return nullptr;
    return env.context().allocate(u64{kernels::cluster_count(mesh.layout.counts)} *
                                  sizeof(kernels::cluster_bounds));
}

kernels::pose_planes pose_in(const output_payload& payload) {
    return {payload.plane<f32>("pose").data(), payload.plane<f32>("weights").data()};
}

kernels::moved_vertices moved_in(const output_payload& payload) {
    if (payload.format().find("positions") == nullptr) return {};
    return {payload.plane<f32>("positions").data(),
            reinterpret_cast<kernels::shaded_vertex*>(payload.plane<f32>("vertices").data())};
}

kernels::triangle_buffers triangles_in(const output_payload& payload, u32 max_instances) {
    return {payload.records<kernels::triangle_counters>("counters"),
            payload.records<kernels::instance_record>("instances"), payload.plane<u32>("list").data(),
            max_instances};
}

// The writing stage and the reading stage use the same structs of pointers, so const is cast away here.
namespace {
output_payload writable(const input_payload& payload) {
    return {const_cast<std::byte*>(payload.slot()), &payload.format()};
}
}  // namespace

kernels::triangle_buffers triangles_in(const input_payload& payload, u32 max_instances) {
    return triangles_in(writable(payload), max_instances);
}
kernels::pose_planes pose_in(const input_payload& payload) { return pose_in(writable(payload)); }
kernels::moved_vertices moved_in(const input_payload& payload) { return moved_in(writable(payload)); }

}  // namespace carousel::stages
