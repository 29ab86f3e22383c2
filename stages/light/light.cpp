#include "stages/light/light.hpp"

#include <fmt/format.h>

#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {

description light::configure(const configuration& with) {
    if (with.inputs.empty() || with.inputs.size() > 2)
        throw config_error(
            fmt::format("stage \"{}\" needs one or two inputs: a surface (from fragment with output = "
                        "\"surface\"), and a "
                        "shadow map (from shadow); it has {}",
                        with.stage, with.inputs.size()));
    const input_description& surface = with.inputs.front();
    const bool three_quarter = is_three_quarter(surface.format);
    args_.width = extent_of(surface.format, "depth", 1);
    args_.height = extent_of(surface.format, "depth", 0);
    require_format(
        surface.format,
        surface_format(args_.width, args_.height, three_quarter, surface.format.find("emission") != nullptr),
        with.stage, surface.stage);
    if (with.inputs.size() == 2) {
        const input_description& map = with.inputs.back();
        const auto radius = map.format.constants.find("radius");
        args_.shadow_side = extent_of(map.format, "depth", 0);
        args_.shadow_radius = radius == map.format.constants.end() ? 0.0F : static_cast<f32>(radius->second);
        require_format(map.format, shadow_format(args_.shadow_side, args_.shadow_radius, three_quarter),
                       with.stage, map.stage);
    }
    const settings& s = *with.settings;
    args_.sun = static_cast<f32>(s.number("sun", 3.0, 0.0, 1e4));
    args_.occlusion_radius = static_cast<f32>(s.number("occlusion", 0.3, 0.0, 1e4));
    const f64 fog = s.number("fog", 0.0, 0.0, 1e6);
    args_.fog = fog > 0.0 ? static_cast<f32>(1.0 / fog) : 0.0F;
    return {.outputs = {radiance_format(args_.width, args_.height, three_quarter)},
            .parameters = scene_parameters::schema(three_quarter),
            .same_work = true};
}

void light::prepare(environment& env) {
    const auto made = env.context().allocate_host(sizeof(kernels::environment));
    kernels::make_environment(*reinterpret_cast<kernels::environment*>(made->host_data()));
    sky_ = env.context().allocate(sizeof(kernels::environment));
    env.queue().copy(sky_->data(), made->data(), sizeof(kernels::environment));
    env.queue().drain();
    args_.sky = reinterpret_cast<const kernels::environment*>(sky_->data());
    scratch_ = env.context().allocate(u64{args_.width} * args_.height);
    args_.scratch = reinterpret_cast<u8*>(scratch_->data());
}

void light::process(frame& f) {
    kernels::light_args args = args_;
    args.in = surface_in(f.input(0));
    if (args.shadow_side > 0) args.shadow = f.input(1).plane<const f32>("depth").data();
    args.scene = scene_of(f);
    args.radiance = f.output().plane<f32>("radiance").data();
    kernels::light(f.queue(), args);
}

}  // namespace carousel::stages
