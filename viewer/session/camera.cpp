#include "viewer/session/camera.hpp"

#include <algorithm>
#include <cmath>

#include "viewer/session/parameter_values.hpp"

namespace carousel::viewer {
namespace {
constexpr f32 max_pitch = 1.55F;  // the pitch is limited: the up vector is y, so at the poles the direction
                                  // "right" would be undefined
constexpr f32 min_distance = 0.2F, max_distance = 80.0F;

f32 finite_or(f32 value, f32 otherwise) noexcept { return std::isfinite(value) ? value : otherwise; }

const ring::parameter* point_with_role(const ring::parameter_schema& s, const char* role) noexcept {
    const ring::parameter* p = with_role(s, role);
    return p != nullptr && is_point(*p) ? p : nullptr;
}
}  // namespace

std::optional<camera> camera_of(const ring::parameter_schema& s, std::span<const std::byte> values) noexcept {
    const ring::parameter *eye = point_with_role(s, "camera.eye"),
                          *target = point_with_role(s, "camera.target");
    if (eye == nullptr || target == nullptr) return std::nullopt;
    camera c;
    read_point(*eye, values, c.eye);
    read_point(*target, values, c.target);
    if (const ring::parameter* fov = with_role(s, "camera.fov"))
        c.fov_y = static_cast<f32>(number_in(*fov, values));
    return c;
}

void put_camera(const camera& c, const ring::parameter_schema& s, std::span<std::byte> values) noexcept {
    const f32 up[3] = {0, 1, 0};
    if (const ring::parameter* p = point_with_role(s, "camera.eye")) put_point(*p, values, c.eye);
    if (const ring::parameter* p = point_with_role(s, "camera.target")) put_point(*p, values, c.target);
    if (const ring::parameter* p = point_with_role(s, "camera.up")) put_point(*p, values, up);
    if (const ring::parameter* p = with_role(s, "camera.fov")) put_number(*p, values, 0, f64{c.fov_y});
}

orbit orbit_of(const camera& c) noexcept {
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

void place_camera(const orbit& o, camera& c) noexcept {
    const f32 flat = std::cos(o.pitch) * o.distance;
    const f32 from[3] = {std::sin(o.yaw) * flat, std::sin(o.pitch) * o.distance, std::cos(o.yaw) * flat};
    for (int k = 0; k < 3; ++k) {
        c.target[k] = o.target[k];
        c.eye[k] = o.target[k] + from[k];
    }
}

void turn(orbit& o, f32 dx, f32 dy) noexcept {
    o.yaw -= dx * 3.0F;
    o.pitch = std::clamp(o.pitch + dy * 3.0F, -max_pitch, max_pitch);
}

void shift(orbit& o, f32 dx, f32 dy, f32 fov_y) noexcept {
    const f32 height = 2 * o.distance * std::tan(fov_y / 2);  // visible height of the plane at the target
    const f32 right[3] = {std::cos(o.yaw), 0, -std::sin(o.yaw)};
    const f32 up[3] = {-std::sin(o.yaw) * std::sin(o.pitch), std::cos(o.pitch),
                       -std::cos(o.yaw) * std::sin(o.pitch)};
    for (int k = 0; k < 3; ++k) o.target[k] += (-right[k] * dx + up[k] * dy) * height;
}

void dolly(orbit& o, f32 steps) noexcept {
    o.distance = std::clamp(o.distance * std::pow(0.9F, steps), min_distance, max_distance);
}

direction_angles angles_of(const f32 (&direction)[3]) noexcept {
    const f32 length =
        std::sqrt(direction[0] * direction[0] + direction[1] * direction[1] + direction[2] * direction[2]);
    if (!(length > 1e-6F) || !std::isfinite(length)) return {};
    return {std::atan2(direction[0], direction[2]),
            std::asin(std::clamp(direction[1] / length, -1.0F, 1.0F))};
}

void place_direction(const direction_angles& a, f32 (&direction)[3]) noexcept {
    direction[0] = std::sin(a.azimuth) * std::cos(a.elevation);
    direction[1] = std::sin(a.elevation);
    direction[2] = std::cos(a.azimuth) * std::cos(a.elevation);
}

}  // namespace carousel::viewer
