#pragma once
// The payloads of the stages after a G-buffer: fragment -> light, shadow -> light, light -> post.

#include <carousel/stage.hpp>

#include "kernels/surface_planes.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

/// The constant of a format whose stages begin with the view of mesh files.
inline constexpr const char* three_quarter_constant = "three_quarter_view";

/// The planes of a surface format that not every one has.
struct surface_contents {
    bool materials = false;  ///< the mesh has some, so that there is a plane `emission`
    u32 layers = 0;          ///< transparent layers per pixel
    u32 samples = 1;         ///< per pixel; with 4 there are the planes `coverage` and `samples`
    bool motion = false;     ///< there is a plane `triangle`, from which taa finds the motion of surfaces
};
/// fragment -> light (kernels/surface_planes.hpp). `view`: as for scene_format().
[[nodiscard]] ring::frame_format surface_format(u32 width, u32 height, const start_view& view,
                                                const surface_contents& contents);
[[nodiscard]] surface_contents contents_of(const frame_format& surface);
/// The lights of the mesh's file: their number, and where they are in the asset mesh. Constants of a surface
/// format, absent if there are none.
inline constexpr const char* lights_constant = "lights";
inline constexpr const char* lights_offset_constant = "lights_at";

/// shadow -> light: plane `depth` f32[side][side], 1 / distance from the light camera, 0 where there is
/// nothing; the constant `radius` is that of light_camera().
[[nodiscard]] ring::frame_format shadow_format(u32 side, f32 radius, const start_view& view);
/// light -> post: plane `radiance` f32[h][w][4], linear light; the fourth value is 1.
[[nodiscard]] ring::frame_format radiance_format(u32 width, u32 height, const start_view& view);

/// The view with which the stages that made the input begin, and a format that states it.
[[nodiscard]] start_view view_of(const frame_format& format);
[[nodiscard]] ring::frame_format with_view(ring::frame_format format, start_view view);
/// Returns extent `dimension` of a plane, or 0.
[[nodiscard]] u32 extent_of(const frame_format& format, std::string_view plane, std::size_t dimension);
/// The planes of a surface payload; the kernels only read those of an input.
[[nodiscard]] kernels::surface_planes surface_in(const output_payload& payload);
[[nodiscard]] kernels::surface_planes surface_in(const input_payload& payload);

}  // namespace carousel::stages
