#pragma once
// Camera, light and shading as parameters of the kernels. Plain data with a fixed layout, because it is part
// of the parameters of every frame (stages/scene/scene_parameters.hpp).

#include "core/types.hpp"

namespace carousel::kernels {

/// Right-handed world, y up. Angles in radians, lengths in world units.
struct camera_state {
    f32 eye[3] = {0.0F, 0.0F, 2.6F};
    f32 target[3] = {0.0F, 0.0F, 0.0F};
    f32 up[3] = {0.0F, 1.0F, 0.0F};
    f32 fov_y = 0.8F;  ///< vertical field of view
    f32 near = 0.1F;
    f32 far = 100.0F;
    f32 jitter[2] =
        {};  ///< by which the picture is moved to the right and down, in pixels; computed per frame
};

struct scene_state {
    camera_state camera;
    f32 light[3] = {0.577350269F, 0.577350269F, 0.577350269F};  ///< unit vector towards the light
    f32 ambient = 0.1F;
    f32 spin = 0.01F;  ///< rotation about y, radians per frame
    f32 exposure = 1.0F;
    u32 shading = 0;    ///< 0 lit, 1 normals, 2 triangle ids, 3 depth
    u32 wireframe = 0;  ///< 1: the edges of the triangles are drawn as well, if `shading` is 0 or 1
    /// the camera path: the angle, in radians per frame, by which the eye turns about the vertical axis
    /// through the target
    f32 orbit = 0.0F;
    /// pixels by which the camera's jitter moves the picture from frame to frame, for the stage taa; 0: none
    f32 jitter = 0.0F;
    f32 reserved[4] = {};
};
static_assert(sizeof(scene_state) == 28 * 4);

}  // namespace carousel::kernels
