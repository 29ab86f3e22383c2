#include "stages/scene/scene_parameters.hpp"

#include <algorithm>
#include <cstddef>

#include "core/host_device.hpp"
#include "kernels/body/taa.hpp"

namespace carousel::stages {
namespace {

using kernels::camera_state;
using kernels::scene_state;
using ring::parameter;
using ring::parameter_kind;

constexpr u32 in_camera(std::size_t offset) {
    return static_cast<u32>(offsetof(scene_state, camera) + offset);
}

parameter point(const char* name, u32 offset, std::vector<f64> initial, const char* role) {
    return {.name = name,
            .offset = offset,
            .count = 3,
            .initial = std::move(initial),
            .low = -1e6,
            .high = 1e6,
            .role = role};
}

}  // namespace

ring::parameter_schema scene_parameters::schema(const start_view& view) {
    scene_state is;
    if (view.three_quarter) {
        std::copy_n(three_quarter_eye, 3, is.camera.eye);
        std::copy_n(three_quarter_light, 3, is.light);
    }
    if (view.camera) is.camera = *view.camera;
    const camera_state& c = is.camera;
    const auto three = [](const f32(&v)[3]) { return std::vector<f64>{v[0], v[1], v[2]}; };
    ring::parameter_schema s{.type = type, .bytes = sizeof(scene_parameters), .fields = {}};
    s.fields = {
        point("eye", in_camera(offsetof(camera_state, eye)), three(c.eye), "camera.eye"),
        point("target", in_camera(offsetof(camera_state, target)), three(c.target), "camera.target"),
        point("up", in_camera(offsetof(camera_state, up)), three(c.up), "camera.up"),
        {.name = "fov_y",
         .offset = in_camera(offsetof(camera_state, fov_y)),
         .initial = {c.fov_y},
         .low = 0.01,
         .high = 3.1,
         .usual_low = 0.1745,
         .usual_high = 2.094,
         .label = "view angle",
         .unit = "rad",
         .role = "camera.fov"},
        {.name = "near",
         .offset = in_camera(offsetof(camera_state, near)),
         .initial = {c.near},
         .low = 1e-4,
         .high = 1e6,
         .role = "hidden",
         .below = "far"},
        {.name = "far",
         .offset = in_camera(offsetof(camera_state, far)),
         .initial = {c.far},
         .low = 1e-4,
         .high = 1e6,
         .role = "hidden"},
        {.name = "light",
         .offset = offsetof(scene_state, light),
         .count = 3,
         .initial = three(is.light),
         .low = -1e6,
         .high = 1e6,
         .role = "direction"},
        {.name = "ambient", .offset = offsetof(scene_state, ambient), .initial = {is.ambient}},
        {.name = "spin",
         .offset = offsetof(scene_state, spin),
         .initial = {is.spin},
         .low = -10,
         .high = 10,
         .usual_low = -0.1,
         .usual_high = 0.1,
         .unit = "rad/frame"},
        {.name = "exposure",
         .offset = offsetof(scene_state, exposure),
         .initial = {is.exposure},
         .low = 0,
         .high = 1000,
         .usual_low = 0.1,
         .usual_high = 4,
         .unit = "x"},
        {.name = "shading",
         .kind = parameter_kind::choice,
         .offset = offsetof(scene_state, shading),
         .high = 3,
         .choices = {"lit", "normals", "triangles", "depth"}},
        {.name = "wireframe", .kind = parameter_kind::flag, .offset = offsetof(scene_state, wireframe)},
        {.name = "orbit",
         .offset = offsetof(scene_state, orbit),
         .initial = {is.orbit},
         .low = -10,
         .high = 10,
         .usual_low = -0.1,
         .usual_high = 0.1,
         .unit = "rad/frame",
         .role = "hidden"},
        {.name = "jitter",
         .offset = offsetof(scene_state, jitter),
         .initial = {is.jitter},
         .low = 0,
         .high = 1,
         .unit = "pixels",
         .role = "hidden"},
    };
    return s;
}

scene_state scene_at(scene_state scene, u64 frame_number) noexcept {
    if (scene.jitter != 0.0F) {
        const kernels::body::jitter_offset offset = kernels::body::jitter_at(frame_number);
        scene.camera.jitter[0] = scene.jitter * offset.x;
        scene.camera.jitter[1] = scene.jitter * offset.y;
    }
    if (scene.orbit == 0.0F) return scene;
    const sine_cosine turn = sine_and_cosine(static_cast<f64>(frame_number) * scene.orbit);
    camera_state& c = scene.camera;
    const f64 x = f64{c.eye[0]} - c.target[0], z = f64{c.eye[2]} - c.target[2];
    c.eye[0] = static_cast<f32>(c.target[0] + (x * turn.cosine + z * turn.sine));
    c.eye[2] = static_cast<f32>(c.target[2] + (z * turn.cosine - x * turn.sine));
    return scene;
}

scene_state scene_of(const frame& f) { return scene_at(f.parameters<scene_parameters>(), f.frame_number()); }

}  // namespace carousel::stages
