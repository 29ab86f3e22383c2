#pragma once
// An orbit camera: a point that it looks at, a distance and two angles. Plain maths between the mouse and scene_state.

#include "shm/scene_state.hpp"

namespace carousel::viewer {

struct orbit {
    f32 yaw = 0, pitch = 0;      ///< radians; yaw about y from +z, pitch up from the horizon
    f32 distance = 2.6F;         ///< world units
    f32 target[3] = {0, 0, 0};
};

[[nodiscard]] orbit orbit_of(const shm::camera_state& c) noexcept;
void place_camera(const orbit& o, shm::camera_state& c) noexcept;
/// Turns by a mouse movement in fractions of the picture's height; the pitch stops short of the poles.
void turn(orbit& o, f32 dx, f32 dy) noexcept;
/// Moves the target in the picture's plane so that what is under the mouse stays there.
void shift(orbit& o, f32 dx, f32 dy, f32 fov_y) noexcept;
/// Nearer for steps > 0; each step is a tenth.
void dolly(orbit& o, f32 steps) noexcept;

/// Direction of the light as angles, and back.
struct light_angles {
    f32 azimuth = 0, elevation = 0;  ///< radians
};
[[nodiscard]] light_angles angles_of(const f32 (&light)[3]) noexcept;
void place_light(const light_angles& a, f32 (&light)[3]) noexcept;

}  // namespace carousel::viewer
