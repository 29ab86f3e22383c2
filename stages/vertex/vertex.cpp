#include "stages/vertex/vertex.hpp"

#include <fmt/format.h>

namespace carousel::stages {
namespace {

/// Throws settings_error unless the setting is valid and the picture small enough for it.
u32 samples_from(const configuration& with) {
    const auto samples = static_cast<u32>(with.settings->integer("samples", 1, 1, 4));
    if (samples != 1 && samples != 4)
        throw settings_error("samples", fmt::format("{} is not possible; expected 1 or 4", samples));
    if (samples == 4 && (with.width > kernels::max_extent / 2 || with.height > kernels::max_extent / 2))
        throw settings_error("samples", fmt::format("with 4 samples per pixel a picture may have up to {} "
                                                    "pixels per side; it has {}x{}",
                                                    kernels::max_extent / 2, with.width, with.height));
    return samples;
}

}  // namespace

description vertex::configure(const configuration& with) {
    mesh_ = require_scene(with);
    require_limits(with, mesh_);
    const u32 samples = samples_from(with);
    const u32 scale = samples == 4 ? 2 : 1;
    width_ = scale * with.width;
    height_ = scale * with.height;
    return {.outputs = {triangles_format(mesh_.layout.counts, mesh_.max_instances, mesh_.view, mesh_.moves,
                                         samples)},
            .uses = mesh_.assets(),
            .parameters = scene_parameters::schema(mesh_.view),
            .same_work = true,
            .bit_equal = true};
}

void vertex::prepare(environment& env) {
    block_ = map_mesh(env, mesh_);
    motion_ = map_motion(env, mesh_);
    bounds_ = allocate_bounds(env, mesh_);
}

void vertex::process(frame& f) {
    kernels::vertex_stage_args args;
    args.mesh = mesh_.layout;
    args.mesh_block = block_;
    args.draw = f.input().records<const kernels::draw_record>("draw");
    args.models = f.input().plane<const f32>("models").data();
    args.scene = scene_of(f);
    args.width = width_;
    args.height = height_;
    args.out = triangles_in(f.output(), mesh_.max_instances);
    if (mesh_.moves) {
        args.moved = moved_in(f.output());
        args.moved_bounds = reinterpret_cast<kernels::cluster_bounds*>(bounds_->data());
        kernels::move_vertices(f.queue(), {mesh_.motion, motion_, pose_in(f.input()), args.moved});
    }
    kernels::vertex_stage(f.queue(), args);
}

}  // namespace carousel::stages
