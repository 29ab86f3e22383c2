#include "stages/shadow/shadow.hpp"

#include "kernels/body/surface.hpp"
#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {

description shadow::configure(const configuration& with) {
    mesh_ = require_scene(with);
    require_limits(with, mesh_);
    side_ = static_cast<u32>(with.settings->integer("side", 1024, 16, 8192));
    radius_ = static_cast<f32>(with.settings->number("radius", 2.0, 1e-3, 1e6));
    triangles_ = triangles_format(mesh_.layout.counts, mesh_.max_instances, mesh_.view, mesh_.moves);
    (void)triangles_.lay_out();
    return {.outputs = {shadow_format(side_, radius_, mesh_.view)},
            .uses = mesh_.assets(),
            .parameters = scene_parameters::schema(mesh_.view),
            .same_work = true,
            .bit_equal = true};
}

void shadow::prepare(environment& env) {
    block_ = map_mesh(env, mesh_);
    motion_ = map_motion(env, mesh_);
    bounds_ = allocate_bounds(env, mesh_);
    between_ = env.context().allocate(triangles_.lay_out());
    scratch_ = env.context().allocate(kernels::fragment_scratch_bytes(env.context().kind(), side_, side_));
}

void shadow::process(frame& f) {
    kernels::scene_state scene = scene_of(f);
    scene.camera = kernels::body::light_camera(scene, radius_);
    const output_payload between(between_->data(), &triangles_);

    kernels::vertex_stage_args first;
    first.mesh = mesh_.layout;
    first.mesh_block = block_;
    first.draw = f.input().records<const kernels::draw_record>("draw");
    first.models = f.input().plane<const f32>("models").data();
    first.scene = scene;
    first.width = first.height = side_;
    first.out = triangles_in(between, mesh_.max_instances);
    if (mesh_.moves) {
        first.moved = moved_in(between);
        first.moved_bounds = reinterpret_cast<kernels::cluster_bounds*>(bounds_->data());
        kernels::move_vertices(f.queue(), {mesh_.motion, motion_, pose_in(f.input()), first.moved});
    }
    kernels::vertex_stage(f.queue(), first);

    kernels::fragment_stage_args second;
    second.mesh = mesh_.layout;
    second.mesh_block = block_;
    second.in = first.out;
    second.moved = first.moved;
    second.scene = scene;
    second.width = second.height = side_;
    second.surface.depth = f.output().plane<f32>("depth").data();
    second.scratch = scratch_->data();
    second.scratch_bytes = scratch_->bytes();
    kernels::fragment_stage(f.queue(), second);
}

}  // namespace carousel::stages
