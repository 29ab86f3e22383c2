#include "stages/scene/surface_formats.hpp"

#include <iterator>

namespace carousel::stages {
namespace {

constexpr const char* camera_constants[] = {"view_eye_x",    "view_eye_y",    "view_eye_z", "view_target_x",
                                            "view_target_y", "view_target_z", "view_up_x",  "view_up_y",
                                            "view_up_z",     "view_fov_y"};

/// The numbers of a camera in the order of camera_constants.
f32& number_of(kernels::camera_state& c, std::size_t i) {
    f32* const groups[] = {c.eye, c.target, c.up, &c.fov_y};
    return groups[i / 3][i % 3];
}

}  // namespace

ring::frame_format with_view(ring::frame_format format, start_view view) {
    if (view.three_quarter) format.constants[three_quarter_constant] = 1;
    for (std::size_t i = 0; view.camera && i < std::size(camera_constants); ++i)
        format.constants[camera_constants[i]] = number_of(*view.camera, i);
    return format;
}

start_view view_of(const frame_format& format) {
    start_view view(format.constants.contains(three_quarter_constant));
    kernels::camera_state camera;
    for (std::size_t i = 0; i < std::size(camera_constants); ++i) {
        const auto at = format.constants.find(camera_constants[i]);
        if (at == format.constants.end()) return view;
        number_of(camera, i) = static_cast<f32>(at->second);
    }
    view.camera = camera;
    return view;
}

ring::frame_format surface_format(u32 width, u32 height, const start_view& view,
                                  const surface_contents& contents) {
    ring::frame_format format{kernels::surface_format,
                              {{"albedo", ring::element::u8_, {height, width, 4}, {}, 0},
                               {"normal", ring::element::u32_, {height, width}, {}, 0},
                               {"material", ring::element::u8_, {height, width, 4}, {}, 0},
                               {"depth", ring::element::f32_, {height, width}, {}, 0}},
                              {}};
    if (contents.materials)
        format.planes.push_back({"emission", ring::element::u32_, {height, width}, {}, 0});
    if (contents.layers > 0)
        format.planes.push_back(
            {"layers", ring::element::u32_, {height, width, contents.layers, kernels::layer_words}, {}, 0});
    if (contents.samples > 1) {
        format.planes.push_back({"coverage", ring::element::u8_, {height, width}, {}, 0});
        format.planes.push_back({"samples",
                                 ring::element::u32_,
                                 {height, width, kernels::further_surfaces, kernels::layer_words},
                                 {},
                                 0});
    }
    if (contents.motion) format.planes.push_back({"triangle", ring::element::u32_, {height, width}, {}, 0});
    return with_view(std::move(format), view);
}

surface_contents contents_of(const frame_format& surface) {
    return {surface.find("emission") != nullptr, extent_of(surface, "layers", 2),
            surface.find("coverage") != nullptr ? 4U : 1U, surface.find("triangle") != nullptr};
}

ring::frame_format shadow_format(u32 side, f32 radius, const start_view& view) {
    return with_view(
        {kernels::shadow_format, {{"depth", ring::element::f32_, {side, side}, {}, 0}}, {{"radius", radius}}},
        view);
}

ring::frame_format radiance_format(u32 width, u32 height, const start_view& view) {
    return with_view(
        {kernels::radiance_format, {{"radiance", ring::element::f32_, {height, width, 4}, {}, 0}}, {}}, view);
}

u32 extent_of(const frame_format& format, std::string_view plane, std::size_t dimension) {
    const ring::plane* p = format.find(std::string(plane));
    return p != nullptr && dimension < p->shape.size() ? static_cast<u32>(p->shape[dimension]) : 0;
}

kernels::surface_planes surface_in(const output_payload& payload) {
    const ring::plane* const layers = payload.format().find("layers");
    const bool sampled = payload.format().find("coverage") != nullptr;
    return {reinterpret_cast<u32*>(payload.plane<u8>("albedo").data()),
            payload.plane<u32>("normal").data(),
            reinterpret_cast<u32*>(payload.plane<u8>("material").data()),
            payload.plane<f32>("depth").data(),
            payload.format().find("emission") != nullptr ? payload.plane<u32>("emission").data() : nullptr,
            layers != nullptr ? payload.plane<u32>("layers").data() : nullptr,
            layers != nullptr ? static_cast<u32>(layers->shape[2]) : 0,
            sampled ? payload.plane<u8>("coverage").data() : nullptr,
            sampled ? payload.plane<u32>("samples").data() : nullptr,
            payload.format().find("triangle") != nullptr ? payload.plane<u32>("triangle").data() : nullptr};
}

// The writing stage and the reading stage use the same struct of pointers, so const is cast away here.
kernels::surface_planes surface_in(const input_payload& payload) {
    return surface_in(output_payload(const_cast<std::byte*>(payload.slot()), &payload.format()));
}

}  // namespace carousel::stages
