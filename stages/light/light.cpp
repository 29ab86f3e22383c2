#include "stages/light/light.hpp"

#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "kernels/sky_picture.hpp"
#include "stages/assets/radiance_picture.hpp"
#include "stages/scene/mesh_formats.hpp"
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
    const start_view view = view_of(surface.format);
    args_.width = extent_of(surface.format, "depth", 1);
    args_.height = extent_of(surface.format, "depth", 0);
    frame_format expected = surface_format(args_.width, args_.height, view, contents_of(surface.format));
    const auto lights = surface.format.constants.find(lights_constant),
               offset = surface.format.constants.find(lights_offset_constant);
    if (lights != surface.format.constants.end() && offset != surface.format.constants.end()) {
        expected.constants[lights_constant] = lights->second;
        expected.constants[lights_offset_constant] = offset->second;
        if (!(lights->second >= 0 && lights->second <= kernels::max_lights && offset->second >= 0 &&
              offset->second < 9e15))
            throw config_error(
                fmt::format("stage \"{}\" can't use {} lights of stage \"{}\"; expected at most {}",
                            with.stage, lights->second, surface.stage, kernels::max_lights));
        args_.light_count = static_cast<u32>(lights->second);
        lights_at_ = static_cast<u64>(offset->second);
    }
    require_format(surface.format, expected, with.stage, surface.stage);
    if (with.inputs.size() == 2) {
        const input_description& map = with.inputs.back();
        const auto radius = map.format.constants.find("radius");
        args_.shadow_side = extent_of(map.format, "depth", 0);
        args_.shadow_radius = radius == map.format.constants.end() ? 0.0F : static_cast<f32>(radius->second);
        require_format(map.format, shadow_format(args_.shadow_side, args_.shadow_radius, view), with.stage,
                       map.stage);
    }
    const settings& s = *with.settings;
    args_.occlusion_radius = static_cast<f32>(s.number("occlusion", 0.3, 0.0, 1e4));
    sky_file_ = s.text("sky", "procedural");
    if (sky_file_ != "procedural") {
        sky_file_ = with.path(sky_file_);
        std::error_code failed;
        if (!std::filesystem::is_regular_file(sky_file_, failed))
            throw settings_error("sky",
                                 fmt::format("\"{}\" is not a file; expected \"procedural\" or the path of "
                                             "a Radiance picture (.hdr)",
                                             sky_file_));
    }
    std::vector<std::string> uses;
    if (args_.light_count > 0) uses = {mesh_asset};
    return {.outputs = {radiance_format(args_.width, args_.height, view)},
            .uses = std::move(uses),
            .parameters = picture_parameters::of_light(view, args_.light_count > 0 ? 0.0 : 3.0),
            .same_work = true,
            .bit_equal = true};
}

void light::prepare(environment& env) {
    const auto made = env.context().allocate_host(sizeof(kernels::environment));
    auto& tables = *reinterpret_cast<kernels::environment*>(made->host_data());
    if (sky_file_ == "procedural") {
        kernels::make_environment(tables);
    } else {
        const radiance_picture picture = load_radiance(sky_file_, "sky");
        const kernels::sky_picture sky(picture.rgb.data(), picture.width, picture.height);
        sky.fill(tables);
        const std::vector<u32> texels = sky.backdrop();
        const auto staging = env.context().allocate_host(texels.size() * sizeof(u32));
        std::memcpy(staging->host_data(), texels.data(), texels.size() * sizeof(u32));
        backdrop_ = env.context().allocate(texels.size() * sizeof(u32));
        env.queue().copy(backdrop_->data(), staging->data(), texels.size() * sizeof(u32));
        env.queue().drain();
        args_.backdrop = reinterpret_cast<const u32*>(backdrop_->data());
    }
    sky_ = env.context().allocate(sizeof(kernels::environment));
    env.queue().copy(sky_->data(), made->data(), sizeof(kernels::environment));
    env.queue().drain();
    args_.sky = reinterpret_cast<const kernels::environment*>(sky_->data());
    if (args_.light_count > 0) {
        const std::span<const std::byte> mesh = env.asset(mesh_asset);
        if (mesh.size() < lights_at_ + args_.light_count * sizeof(kernels::punctual_light))
            throw shm_error(fmt::format(
                "the asset \"{}\" has {} bytes, but its lights begin at {}: check that all stages "
                "are from one build",
                mesh_asset, mesh.size(), lights_at_));
        args_.lights = reinterpret_cast<const kernels::punctual_light*>(mesh.data() + lights_at_);
    }
    scratch_ = env.context().allocate(u64{args_.width} * args_.height);
    args_.scratch = reinterpret_cast<u8*>(scratch_->data());
}

void light::process(frame& f) {
    kernels::light_args args = args_;
    args.in = surface_in(f.input(0));
    if (args.shadow_side > 0) args.shadow = f.input(1).plane<const f32>("depth").data();
    const picture_parameters set = f.parameters<picture_parameters>();
    args.scene = scene_at(set.scene, f.frame_number());
    args.sun = set.sun;
    args.fog = set.fog > 0.0F ? 1.0F / set.fog : 0.0F;
    args.material = set.material;
    args.radiance = f.output().plane<f32>("radiance").data();
    kernels::light(f.queue(), args);
}

}  // namespace carousel::stages
