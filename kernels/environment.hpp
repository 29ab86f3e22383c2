#pragma once
// The tables of image-based light: computed once on the host (environment.cpp), read by every pixel. Plain
// data, because the tables are an asset of the run.

#include "core/types.hpp"

namespace carousel::kernels {

inline constexpr u32 sky_levels = 6;  ///< roughness 0, 0.2, ... 1
inline constexpr u32 sky_side = 64;   ///< texels per side of a level's octahedral map, without its border
inline constexpr u32 sky_pitch = sky_side + 2;  ///< with the border of one texel that filtering reads
inline constexpr u32 split_sum_side = 32;
inline constexpr u32 backdrop_side = 512;  ///< texels per side of the octahedral map that pictures show

struct alignas(16) environment {
    /// The diffuse light from all directions around a normal, as the 9 coefficients per channel of spherical
    /// harmonics (Ramamoorthi and Hanrahan 2001), already multiplied by the constants of their equation 13
    /// and 1/pi.
    f32 harmonics[9][4];
    /// Karis 2013: scale and bias of the specular colour; [roughness][cosine of the view].
    f32 split_sum[split_sum_side][split_sum_side][2];
    /// The sky, filtered with the GGX lobe of each level's roughness, as seen by a mirror.
    f32 sky[sky_levels][sky_pitch][sky_pitch][4];
};

/// Fills the tables. The same bytes on every machine.
void make_environment(environment& to);

}  // namespace carousel::kernels
