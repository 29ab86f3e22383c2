#include "stages/fragment/fragment.hpp"

#include <fmt/format.h>

#include "stages/fragment/material_table.hpp"
#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {

description fragment::configure(const configuration& with) {
    mesh_ = require_triangles(with);
    require_limits(with, mesh_);
    width_ = with.width;
    height_ = with.height;
    surface_ = with.settings->choice("output", "picture", {"picture", "surface"}) == "surface";
    const bool has_materials = mesh_.layout.counts.material_count > 0;
    if (has_materials && !surface_)
        throw config_error(fmt::format(
            "stage \"{}\": the mesh has full materials, which only a G-buffer shows: set output = "
            "\"surface\" here and add the stages light and post (pipelines/looks.toml), or remove "
            "full_materials from the stage geometry",
            with.stage));
    if (mesh_.samples > 1 && !surface_)
        throw config_error(fmt::format(
            "stage \"{}\": the stage \"{}\" has samples = {}, which need a G-buffer: set output = "
            "\"surface\" "
            "here and add the stages light and post (pipelines/looks.toml), or remove samples there",
            with.stage, with.inputs.front().stage, mesh_.samples));
    if (surface_) {
        const auto most =
            static_cast<u32>(with.settings->integer("layers", kernels::max_layers, 1, kernels::max_layers));
        layers_ = mesh_.layout.counts.blended_count > 0 ? most : 0;
    }
    bool motion = false;
    if (surface_) {
        appearance_ = appearance_from(*with.settings);
        motion = with.settings->flag("motion", false);
    }
    frame_format output = surface_ ? surface_format(width_, height_, mesh_.view,
                                                    {has_materials, layers_, mesh_.samples, motion})
                                   : image_format(width_, height_);
    if (surface_ && mesh_.layout.counts.light_count > 0) {
        output.constants[lights_constant] = mesh_.layout.counts.light_count;
        output.constants[lights_offset_constant] = static_cast<f64>(mesh_.layout.lights);
    }
    return {.outputs = {std::move(output)},
            .uses = {mesh_asset},
            .parameters = scene_parameters::schema(mesh_.view),
            .same_work = true,
            .bit_equal = true};
}

void fragment::prepare(environment& env) {
    block_ = map_mesh(env, mesh_);
    scratch_ = env.context().allocate(
        kernels::fragment_scratch_bytes(env.context().kind(), width_, height_, layers_, mesh_.samples));
}

void fragment::process(frame& f) {
    kernels::fragment_stage_args args;
    args.mesh = mesh_.layout;
    args.mesh_block = block_;
    args.in = triangles_in(f.input(), mesh_.max_instances);
    args.moved = moved_in(f.input());
    args.scene = scene_of(f);
    args.width = width_;
    args.height = height_;
    if (surface_) {
        args.surface = surface_in(f.output());
        args.look = appearance_;
    } else {
        args.color = f.output().plane<u8>("color").data();
    }
    args.samples = mesh_.samples;
    args.scratch = scratch_->data();
    args.scratch_bytes = scratch_->bytes();
    kernels::fragment_stage(f.queue(), args);
}

}  // namespace carousel::stages
