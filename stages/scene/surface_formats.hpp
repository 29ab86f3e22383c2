#pragma once
// The payloads of the stages after a G-buffer: fragment -> light, shadow -> light, light -> post.

#include <carousel/stage.hpp>

#include "kernels/surface_planes.hpp"

namespace carousel::stages {

/// The constant of a format whose stages begin with the view of mesh files.
inline constexpr const char* three_quarter_constant = "three_quarter_view";

/// fragment -> light (kernels/surface_planes.hpp). `three_quarter`: as for scene_format(). `own_materials`:
/// the mesh has some, so that there is a plane `emission`.
[[nodiscard]] ring::frame_format surface_format(u32 width, u32 height, bool three_quarter,
                                                bool own_materials = false);
/// shadow -> light: plane `depth` f32[side][side], 1 / distance from the light camera, 0 where there is
/// nothing; the constant `radius` is that of light_camera().
[[nodiscard]] ring::frame_format shadow_format(u32 side, f32 radius, bool three_quarter);
/// light -> post: plane `radiance` f32[h][w][4], linear light; the fourth value is 1.
[[nodiscard]] ring::frame_format radiance_format(u32 width, u32 height, bool three_quarter);

/// True if the stages that made the input begin with the view of mesh files.
[[nodiscard]] bool is_three_quarter(const frame_format& format);
/// Returns extent `dimension` of a plane, or 0.
[[nodiscard]] u32 extent_of(const frame_format& format, std::string_view plane, std::size_t dimension);
/// The planes of a surface payload; the kernels only read those of an input.
[[nodiscard]] kernels::surface_planes surface_in(const output_payload& payload);
[[nodiscard]] kernels::surface_planes surface_in(const input_payload& payload);

}  // namespace carousel::stages
