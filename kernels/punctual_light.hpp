#pragma once
// Lights of a mesh file, as the kernels read them.

#include "core/types.hpp"

namespace carousel::kernels {

enum class punctual_kind : u32 { directional, point, spot };
/// A light of a mesh file (KHR_lights_punctual) in world space. It casts no shadows.
struct punctual_light {
    f32 position[3] = {0.0F, 0.0F, 0.0F};
    f32 range = 0.0F;                   ///< 0: unlimited
    f32 axis[3] = {0.0F, 0.0F, -1.0F};  ///< unit vector: where it shines
    f32 inner_cosine = 1.0F;            ///< spot: of the half angles
    f32 color[3] = {0.0F, 0.0F, 0.0F};  ///< irradiance; of point and spot lights at the distance 1
    f32 outer_cosine = 0.0F;
    u32 kind = 0;  ///< punctual_kind
    u32 reserved[3] = {};
};
static_assert(sizeof(punctual_light) == 64);
inline constexpr u32 max_lights = 64;

}  // namespace carousel::kernels
