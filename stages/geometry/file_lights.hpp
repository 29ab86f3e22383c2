#pragma once
// The lights of a scene file, for the stage that lights the G-buffer, and its cameras.

#include <vector>

#include "kernels/punctual_light.hpp"
#include "stages/assets/scene_asset.hpp"
#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// The lights of the shown nodes, in the space of the scene; at most kernels::max_lights, with a warning
/// about further ones. `world`: scene_asset::world_transforms().
[[nodiscard]] std::vector<kernels::punctual_light> lights_of(const scene_asset& asset,
                                                             const std::vector<affine>& world);

/// The perspective cameras of the shown nodes, in the space of the scene.
[[nodiscard]] std::vector<file_camera> cameras_of(const scene_asset& asset, const std::vector<affine>& world);
/// Moves lights and cameras as the vertices were moved. Surfaces receive the light that they did before; the
/// target of a camera is the point of its axis that is nearest to the middle.
void place_lights_and_cameras(mesh_data& mesh, const unit_fit& fit);

}  // namespace carousel::stages
