#pragma once
// An orbit camera: a point that it looks at, a distance and two angles. Plain maths between the mouse and the
// parameters that say by their roles that they are a camera's.

#include <cstddef>
#include <optional>
#include <span>

#include "ring/parameter_schema.hpp"

namespace carousel::viewer {

/// Right-handed world, y up; lengths in world units.
struct camera {
    f32 eye[3] = {0, 0, 2.6F};
    f32 target[3] = {0, 0, 0};
    f32 fov_y = 0.8F;  ///< vertical field of view, radians
};
/// What the roles "camera.eye", "camera.target", "camera.fov" say; nothing: without the first two there is no
/// camera.
[[nodiscard]] std::optional<camera> camera_of(const ring::parameter_schema& s,
                                              std::span<const std::byte> values) noexcept;
/// Back into the same fields; "camera.up", where there is one, becomes the orbit's: y.
void put_camera(const camera& c, const ring::parameter_schema& s, std::span<std::byte> values) noexcept;

struct orbit {
    f32 yaw = 0, pitch = 0;  ///< radians; yaw about y from +z, pitch up from the horizon
    f32 distance = 2.6F;     ///< world units
    f32 target[3] = {0, 0, 0};
};

[[nodiscard]] orbit orbit_of(const camera& c) noexcept;
void place_camera(const orbit& o, camera& c) noexcept;
/// Turns by a mouse movement in fractions of the picture's height; the pitch stops short of the poles.
void turn(orbit& o, f32 dx, f32 dy) noexcept;
/// Moves the target in the picture's plane so that what is under the mouse stays there.
void shift(orbit& o, f32 dx, f32 dy, f32 fov_y) noexcept;
/// Nearer for steps > 0; each step is a tenth.
void dolly(orbit& o, f32 steps) noexcept;

/// A direction as angles, and back.
struct direction_angles {
    f32 azimuth = 0, elevation = 0;  ///< radians
};
[[nodiscard]] direction_angles angles_of(const f32 (&direction)[3]) noexcept;
void place_direction(const direction_angles& a, f32 (&direction)[3]) noexcept;

}  // namespace carousel::viewer
