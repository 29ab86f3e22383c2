#include "viewer/camera.hpp"

#include <algorithm>
#include <cmath>

namespace carousel::viewer {
namespace {
constexpr f32 max_pitch = 1.55F;  // the camera's up vector is y: at the pole it would have no side
constexpr f32 min_distance = 0.2F, max_distance = 80.0F;

f32 finite_or(f32 value, f32 otherwise) noexcept { return std::isfinite(value) ? value : otherwise; }
}  // namespace

orbit orbit_of(const shm::camera_state& c) noexcept {
    orbit o;
    f32 d[3];
    for (int k = 0; k < 3; ++k) {
        o.target[k] = finite_or(c.target[k], 0);
        d[k] = finite_or(c.eye[k], k == 2 ? 2.6F : 0.0F) - o.target[k];
    }
    const f32 length = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    o.distance = std::clamp(length, min_distance, max_distance);
    if (length > 1e-6F) {
        o.pitch = std::clamp(std::asin(std::clamp(d[1] / length, -1.0F, 1.0F)), -max_pitch, max_pitch);
        o.yaw = std::atan2(d[0], d[2]);
    }
    return o;
}

void place_camera(const orbit& o, shm::camera_state& c) noexcept {
    const f32 flat = std::cos(o.pitch) * o.distance;
    const f32 from[3] = {std::sin(o.yaw) * flat, std::sin(o.pitch) * o.distance, std::cos(o.yaw) * flat};
    const f32 up[3] = {0, 1, 0};
    for (int k = 0; k < 3; ++k) {
        c.target[k] = o.target[k];
        c.eye[k] = o.target[k] + from[k];
        c.up[k] = up[k];
    }
}

void turn(orbit& o, f32 dx, f32 dy) noexcept {
    o.yaw -= dx * 3.0F;
    o.pitch = std::clamp(o.pitch + dy * 3.0F, -max_pitch, max_pitch);
}

void shift(orbit& o, f32 dx, f32 dy, f32 fov_y) noexcept {
    const f32 height = 2 * o.distance * std::tan(fov_y / 2);  // of the plane through the target, world units
    const f32 right[3] = {std::cos(o.yaw), 0, -std::sin(o.yaw)};
    const f32 up[3] = {-std::sin(o.yaw) * std::sin(o.pitch), std::cos(o.pitch), -std::cos(o.yaw) * std::sin(o.pitch)};
    for (int k = 0; k < 3; ++k) o.target[k] += (-right[k] * dx + up[k] * dy) * height;
}

void dolly(orbit& o, f32 steps) noexcept { o.distance = std::clamp(o.distance * std::pow(0.9F, steps), min_distance, max_distance); }

light_angles angles_of(const f32 (&light)[3]) noexcept {
    const f32 length = std::sqrt(light[0] * light[0] + light[1] * light[1] + light[2] * light[2]);
    if (!(length > 1e-6F) || !std::isfinite(length)) return {};
    return {std::atan2(light[0], light[2]), std::asin(std::clamp(light[1] / length, -1.0F, 1.0F))};
}

void place_light(const light_angles& a, f32 (&light)[3]) noexcept {
    light[0] = std::sin(a.azimuth) * std::cos(a.elevation);
    light[1] = std::sin(a.elevation);
    light[2] = std::cos(a.azimuth) * std::cos(a.elevation);
}

}  // namespace carousel::viewer
