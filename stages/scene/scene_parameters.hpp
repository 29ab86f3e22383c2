#pragma once
// The renderer's frame parameters: camera, light, shading. The viewer, the dashboard and `carousel set` know
// the parameters only by this schema.

#include <optional>

#include <carousel/stage.hpp>
#include "kernels/scene.hpp"
#include "parameters/parameter_schema.hpp"

namespace carousel::stages {

/// The camera and the light with which the parameters of a pipeline begin, if the file gives none.
struct start_view {
    /// The view of mesh files: three_quarter_eye and three_quarter_light, instead of kernels::scene_state.
    bool three_quarter = false;
    /// The camera of the file, instead of that eye.
    std::optional<kernels::camera_state> camera = {};
    start_view(bool is_three_quarter = false) : three_quarter(is_three_quarter) {}  // NOLINT: as it is
};

struct scene_parameters : kernels::scene_state {
    static constexpr const char* type = "carousel.scene";
    [[nodiscard]] static ring::parameter_schema schema(const start_view& view = {});
};

/// 35 degrees to the right and 25 degrees above, at the distance of the default camera: three sides of a box
/// are visible, and the light shades each of them differently.
inline constexpr f32 three_quarter_eye[3] = {1.3516F, 1.0988F, 1.9303F};
inline constexpr f32 three_quarter_light[3] = {0.36F, 0.8F, 0.48F};

/// Returns the scene that is drawn in frame `frame_number`: camera.eye is rotated by orbit * frame_number
/// about the vertical axis (y) through camera.target. The scene is computed only from the parameters and the
/// number, so that a restarted source repeats it bit for bit. If the eye is moved during the run (by the
/// viewer's mouse), the start of the path moves and the orbit continues from there. With `jitter`,
/// camera.jitter is the frame's offset.
[[nodiscard]] kernels::scene_state scene_at(kernels::scene_state scene, u64 frame_number) noexcept;

/// The scene of a frame.
/// Throws config_error unless the stage has named scene_parameters in configure().
[[nodiscard]] kernels::scene_state scene_of(const frame& f);

}  // namespace carousel::stages
