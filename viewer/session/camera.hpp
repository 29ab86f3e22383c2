#pragma once
// An orbit camera: a target point, a distance and two angles. Pure functions: they read a camera from the
// parameters that have a camera's roles, move it as the mouse has moved, and write it back.

#include <cstddef>
#include <optional>
#include <span>

#include "parameters/parameter_schema.hpp"

namespace carousel::viewer {

/// Right-handed world, y up; lengths in world units.
struct camera {
    f32 eye[3] = {0, 0, 2.6F};
    f32 target[3] = {0, 0, 0};
    f32 fov_y = 0.8F;  ///< vertical field of view, radians
};
/// Reads the camera from the fields with the roles "camera.eye", "camera.target" and "camera.fov". Returns
/// nullopt if there is no field for the eye or for the target.
[[nodiscard]] std::optional<camera> camera_of(const ring::parameter_schema& s,
                                              std::span<const std::byte> values) noexcept;
/// Writes the camera back into the same fields. If there is a field with the role "camera.up", it is set to
/// the orbit's up vector, y.
void put_camera(const camera& c, const ring::parameter_schema& s, std::span<std::byte> values) noexcept;

struct orbit {
    f32 yaw = 0, pitch = 0;  ///< angles in radians; yaw is the rotation about y, counted from +z; pitch is
                             ///< counted upwards from the horizon
    f32 distance = 2.6F;     ///< world units
    f32 target[3] = {0, 0, 0};
};

[[nodiscard]] orbit orbit_of(const camera& c) noexcept;
void place_camera(const orbit& o, camera& c) noexcept;
/// Turns the orbit by a mouse movement, which is given in fractions of the picture's height. The pitch is
/// limited so that it does not reach the poles.
void turn(orbit& o, f32 dx, f32 dy) noexcept;
/// Moves the target in the picture's plane so that the point under the mouse stays under it. `dx`, `dy`: in
/// fractions of the picture's height; `fov_y`: radians.
void shift(orbit& o, f32 dx, f32 dy, f32 fov_y) noexcept;
/// Moves the eye nearer to the target if `steps` > 0, by a tenth of the distance per step.
void dolly(orbit& o, f32 steps) noexcept;

/// A direction as angles.
struct direction_angles {
    f32 azimuth = 0, elevation = 0;  ///< radians
};
[[nodiscard]] direction_angles angles_of(const f32 (&direction)[3]) noexcept;
void place_direction(const direction_angles& a, f32 (&direction)[3]) noexcept;

}  // namespace carousel::viewer
