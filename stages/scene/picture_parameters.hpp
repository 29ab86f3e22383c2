#pragma once
// The frame parameters of the stages light and post, after those of the scene: light, fog, changes of all
// materials, bloom, tone map. A pipeline has them only if it has these stages.

#include "kernels/looks.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

/// In the bytes of scene_parameters, which are its first member.
struct picture_parameters {
    static constexpr const char* type = scene_parameters::type;

    kernels::scene_state scene;
    f32 sun = 3.0F;  ///< irradiance of the directional light
    f32 fog = 0.0F;  ///< distance at which the sky hides 63 % of a surface; 0: no fog
    kernels::material_override material;
    f32 bloom = 0.06F;  ///< part of the light that is scattered
    u32 tone_map = static_cast<u32>(kernels::tone_map_name::neutral);

    /// The fields that light reads; `sun`: its initial value.
    [[nodiscard]] static ring::parameter_schema of_light(const start_view& view, f64 sun);
    /// The fields that post reads.
    [[nodiscard]] static ring::parameter_schema of_post(const start_view& view);
    /// All fields.
    [[nodiscard]] static ring::parameter_schema schema(const start_view& view = {});
};

}  // namespace carousel::stages
