#include "stages/taa/taa.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {

description taa::configure(const configuration& with) {
    if (with.inputs.size() != 2 && with.inputs.size() != 3)
        throw config_error(fmt::format(
            "stage \"{}\" needs two or three inputs: linear light (from light), the surface from which it is "
            "made (from fragment), and the scene (from geometry) if it moves; it has {}",
            with.stage, with.inputs.size()));
    const input_description &light = with.inputs[0], &surface = with.inputs[1];
    const start_view view = view_of(light.format);
    args_.width = extent_of(light.format, "radiance", 1);
    args_.height = extent_of(light.format, "radiance", 0);
    const frame_format expected = radiance_format(args_.width, args_.height, view);
    require_format(light.format, expected, with.stage, light.stage);
    if (surface.format.type != kernels::surface_format ||
        extent_of(surface.format, "depth", 1) != args_.width ||
        extent_of(surface.format, "depth", 0) != args_.height)
        throw config_error(
            fmt::format("stage \"{}\" reads {} from \"{}\"; expected {} of {} x {} pixels, like the "
                        "light from \"{}\"",
                        with.stage, surface.format.describe(), surface.stage, kernels::surface_format,
                        args_.width, args_.height, light.stage));
    args_.frames = static_cast<u32>(with.settings->integer("frames", 32, 1, 1000));
    description made{
        .outputs = {expected},
        .state = {{"history", element::f32_, {args_.height, args_.width, 4}}, {"view", element::f32_, {12}}},
        .parameters = scene_parameters::schema(view),
        .same_work = true,
        .bit_equal = true};
    if (with.inputs.size() == 3) {
        if (!contents_of(surface.format).motion)
            throw config_error(fmt::format(
                "stage \"{}\" can't follow what moves in \"{}\": the surface of \"{}\" has no plane "
                "\"triangle\"; set motion = true in that stage",
                with.stage, with.inputs[2].stage, surface.stage));
        configuration scene = with;
        scene.inputs = {with.inputs[2]};
        scene_ = require_scene(scene);
        args_.motion.mesh = scene_->layout;
        args_.motion.copies = scene_->max_instances;
        made.state.push_back({"models", element::f32_, {scene_->max_instances, 12}});
        if (scene_->moves) {
            const kernels::motion_counts& counts = scene_->motion.counts;
            made.uses = scene_->assets();
            made.state.push_back({"pose", element::f32_, {counts.matrices, 12}});
            made.state.push_back({"weights", element::f32_, {std::max(counts.weights, 1U)}});
        }
    }
    return made;
}

void taa::prepare(environment& env) {
    if (!scene_ || !scene_->moves) return;
    args_.motion.mesh_block = map_mesh(env, *scene_);
    args_.motion.vertices.layout = scene_->motion;
    args_.motion.vertices.block = map_motion(env, *scene_);
}

void taa::process(frame& f) {
    const frame_state state = f.state();
    kernels::taa_args args = args_;
    args.radiance = f.input(0).plane<const f32>("radiance").data();
    args.depth = f.input(1).plane<const f32>("depth").data();
    args.history = state.previous().plane<const f32>("history").data();
    args.before = state.previous().plane<const f32>("view").data();
    args.out = f.output().plane<f32>("radiance").data();
    args.next = state.next().plane<f32>("history").data();
    args.after = state.next().plane<f32>("view").data();
    if (scene_) {
        args.motion.triangle = f.input(1).plane<const u32>("triangle").data();
        args.motion.draw = f.input(2).records<const kernels::draw_record>("draw");
        args.motion.models = f.input(2).plane<const f32>("models").data();
        args.motion.before = state.previous().plane<const f32>("models").data();
        args.motion.after = state.next().plane<f32>("models").data();
        if (scene_->moves) {
            args.motion.vertices.now = pose_in(f.input(2));
            args.motion.vertices.before = pose_in(state.previous());
            args.motion.vertices.after = pose_in(state.next());
        }
    }
    args.scene = scene_of(f);
    kernels::taa(f.queue(), args);
}

}  // namespace carousel::stages
