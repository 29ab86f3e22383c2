#include "stages/scene/surface_formats.hpp"

namespace carousel::stages {
namespace {

ring::frame_format with_view(ring::frame_format format, bool three_quarter) {
    if (three_quarter) format.constants[three_quarter_constant] = 1;
    return format;
}

}  // namespace

ring::frame_format surface_format(u32 width, u32 height, bool three_quarter, bool own_materials) {
    ring::frame_format format{kernels::surface_format,
                              {{"albedo", ring::element::u8_, {height, width, 4}, {}, 0},
                               {"normal", ring::element::u32_, {height, width}, {}, 0},
                               {"material", ring::element::u8_, {height, width, 4}, {}, 0},
                               {"depth", ring::element::f32_, {height, width}, {}, 0}},
                              {}};
    if (own_materials) format.planes.push_back({"emission", ring::element::u32_, {height, width}, {}, 0});
    return with_view(std::move(format), three_quarter);
}

ring::frame_format shadow_format(u32 side, f32 radius, bool three_quarter) {
    return with_view(
        {kernels::shadow_format, {{"depth", ring::element::f32_, {side, side}, {}, 0}}, {{"radius", radius}}},
        three_quarter);
}

ring::frame_format radiance_format(u32 width, u32 height, bool three_quarter) {
    return with_view(
        {kernels::radiance_format, {{"radiance", ring::element::f32_, {height, width, 4}, {}, 0}}, {}},
        three_quarter);
}

bool is_three_quarter(const frame_format& format) {
    return format.constants.contains(three_quarter_constant);
}

u32 extent_of(const frame_format& format, std::string_view plane, std::size_t dimension) {
    const ring::plane* p = format.find(std::string(plane));
    return p != nullptr && dimension < p->shape.size() ? static_cast<u32>(p->shape[dimension]) : 0;
}

kernels::surface_planes surface_in(const output_payload& payload) {
    return {reinterpret_cast<u32*>(payload.plane<u8>("albedo").data()), payload.plane<u32>("normal").data(),
            reinterpret_cast<u32*>(payload.plane<u8>("material").data()), payload.plane<f32>("depth").data(),
            payload.format().find("emission") != nullptr ? payload.plane<u32>("emission").data() : nullptr};
}

// The writing stage and the reading stage use the same struct of pointers, so const is cast away here.
kernels::surface_planes surface_in(const input_payload& payload) {
    return surface_in(output_payload(const_cast<std::byte*>(payload.slot()), &payload.format()));
}

}  // namespace carousel::stages
