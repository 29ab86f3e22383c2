#include "stages/post/post.hpp"

#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {

description post::configure(const configuration& with) {
    const input_description& input = require_one_input(with, "linear light (from light)");
    const start_view view = view_of(input.format);
    args_.width = extent_of(input.format, "radiance", 1);
    args_.height = extent_of(input.format, "radiance", 0);
    require_format(input.format, radiance_format(args_.width, args_.height, view), with.stage, input.stage);
    args_.smooth_edges = with.settings->flag("smooth_edges", true);
    auto_exposure_ = with.settings->flag("auto_exposure", false);
    args_.meter.frames = static_cast<f32>(with.settings->number("adaptation", 30.0, 1.0, 1e6));
    description made{.outputs = {image_format(args_.width, args_.height)},
                     .parameters = picture_parameters::of_post(view),
                     .same_work = true,
                     .bit_equal = true};
    if (auto_exposure_) made.state = {{"exposure", element::f32_, {2}}};
    return made;
}

void post::prepare(environment& env) {
    scratch_ = env.context().allocate(kernels::post_scratch_bytes(args_.width, args_.height));
    args_.scratch = scratch_->data();
}

void post::process(frame& f) {
    kernels::post_args args = args_;
    args.radiance = f.input().plane<const f32>("radiance").data();
    args.color = f.output().plane<u8>("color").data();
    const picture_parameters set = f.parameters<picture_parameters>();
    args.exposure = set.scene.exposure;
    args.bloom = set.bloom;
    if (auto_exposure_) {
        const frame_state state = f.state();
        args.meter.before = state.previous().plane<const f32>("exposure").data();
        args.meter.after = state.next().plane<f32>("exposure").data();
    }
    args.map = static_cast<kernels::tone_map_name>(set.tone_map);
    kernels::post(f.queue(), args);
}

}  // namespace carousel::stages
