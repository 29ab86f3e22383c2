#include "stages/vertex/vertex.hpp"

namespace carousel::stages {

description vertex::configure(const configuration& with) {
    mesh_ = require_scene(with);
    require_limits(with, mesh_);
    width_ = with.width;
    height_ = with.height;
    return {.outputs = {triangles_format(mesh_.layout.counts, mesh_.max_instances, mesh_.view, mesh_.moves)},
            .uses = mesh_.assets(),
            .parameters = scene_parameters::schema(mesh_.view),
            .same_work = true};
}

void vertex::prepare(environment& env) {
    block_ = map_mesh(env, mesh_);
    motion_ = map_motion(env, mesh_);
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
        kernels::move_vertices(f.queue(), {mesh_.motion, motion_, pose_in(f.input()), args.moved});
    }
    kernels::vertex_stage(f.queue(), args);
}

}  // namespace carousel::stages
