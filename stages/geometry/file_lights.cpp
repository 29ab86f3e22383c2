#include "stages/geometry/file_lights.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/log.hpp"

namespace carousel::stages {
namespace {

kernels::punctual_light light_at(const asset_light& from, const affine& at) {
    kernels::punctual_light out;
    out.kind = static_cast<u32>(
        from.kind == light_kind::directional
            ? kernels::punctual_kind::directional
            : (from.kind == light_kind::spot ? kernels::punctual_kind::spot : kernels::punctual_kind::point));
    // The light shines along -z of its node.
    const f64 z[3] = {at.m[2], at.m[6], at.m[10]};
    const f64 length = std::sqrt(z[0] * z[0] + z[1] * z[1] + z[2] * z[2]);
    for (std::size_t k = 0; k < 3; ++k) {
        out.position[k] = static_cast<f32>(at.m[4 * k + 3]);
        if (length > 0) out.axis[k] = static_cast<f32>(-z[k] / length);
        out.color[k] = from.color[k] * from.intensity;
    }
    out.range = from.range;
    out.inner_cosine = static_cast<f32>(std::cos(f64{from.inner_cone}));
    out.outer_cosine = static_cast<f32>(std::cos(f64{from.outer_cone}));
    return out;
}

void place_light(kernels::punctual_light& light, const unit_fit& fit) {
    for (std::size_t k = 0; k < 3; ++k)
        light.position[k] = static_cast<f32>((f64{light.position[k]} - fit.centre[k]) / fit.radius);
    if (light.kind == static_cast<u32>(kernels::punctual_kind::directional)) return;
    light.range = static_cast<f32>(light.range / fit.radius);
    // Distances are smaller by the radius, and the irradiance falls with their square.
    for (f32& c : light.color) c = static_cast<f32>(c / (fit.radius * fit.radius));
}

void place_camera(kernels::camera_state& camera, const unit_fit& fit) {
    f64 eye[3], forward[3], square = 0, towards_middle = 0;
    for (std::size_t k = 0; k < 3; ++k) {
        eye[k] = (f64{camera.eye[k]} - fit.centre[k]) / fit.radius;
        forward[k] = f64{camera.target[k]} - camera.eye[k];
        square += forward[k] * forward[k];
        towards_middle -= eye[k] * forward[k];
    }
    const f64 along = square > 0 ? std::max(towards_middle / square, 0.1 / std::sqrt(square)) : 1;
    for (std::size_t k = 0; k < 3; ++k) {
        camera.eye[k] = static_cast<f32>(eye[k]);
        camera.target[k] = static_cast<f32>(eye[k] + along * forward[k]);
    }
}

}  // namespace

std::vector<kernels::punctual_light> lights_of(const scene_asset& asset, const std::vector<affine>& world) {
    std::vector<kernels::punctual_light> out;
    u64 all = 0;
    for (const u32 i : asset.preorder()) {
        const asset_node& node = asset.nodes[i];
        if (node.light == no_index) continue;
        if (++all <= kernels::max_lights) out.push_back(light_at(asset.lights[node.light], world[i]));
    }
    if (all > kernels::max_lights)
        log::warning("{}: it has {} lights; the first {} are used", asset.name, all, kernels::max_lights);
    return out;
}

std::vector<file_camera> cameras_of(const scene_asset& asset, const std::vector<affine>& world) {
    std::vector<file_camera> out;
    for (const u32 i : asset.preorder()) {
        if (asset.nodes[i].camera == no_index) continue;
        const asset_camera& from = asset.cameras[asset.nodes[i].camera];
        if (!from.perspective) continue;
        file_camera made{from.name.empty() ? asset.nodes[i].name : from.name, {}};
        made.state.fov_y = from.fov_y;
        // It looks along -z of its node, with y up. The target is one unit away until place_camera().
        for (std::size_t k = 0; k < 3; ++k) {
            made.state.eye[k] = static_cast<f32>(world[i].m[4 * k + 3]);
            made.state.target[k] = static_cast<f32>(world[i].m[4 * k + 3] - world[i].m[4 * k + 2]);
            made.state.up[k] = static_cast<f32>(world[i].m[4 * k + 1]);
        }
        out.push_back(std::move(made));
    }
    return out;
}

void place_lights_and_cameras(mesh_data& mesh, const unit_fit& fit) {
    for (kernels::punctual_light& l : mesh.materials.lights) place_light(l, fit);
    for (file_camera& c : mesh.cameras) place_camera(c.state, fit);
}

}  // namespace carousel::stages
