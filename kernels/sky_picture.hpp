#pragma once
// A picture of the light from all directions, instead of the procedural sky.

#include <vector>

#include "kernels/environment.hpp"

namespace carousel::kernels {

/// Averages over solid angles, as an octahedral map (body/sky.hpp), so that each direction is one lookup.
class sky_picture {
public:
    /// `rgb`: f32[height][width][3], equirectangular: the top row is the direction +y, the middle column -z,
    /// and the column at three quarters +x. The same bytes on every machine.
    sky_picture(const f32* rgb, u32 width, u32 height);

    /// The tables of image-based light; directions between them are averaged over the lobe of each level.
    void fill(environment& to) const;
    /// What pictures show of it: u32[backdrop_side][backdrop_side], as surface_planes::emission.
    [[nodiscard]] std::vector<u32> backdrop() const;

private:
    struct level {
        u32 side;
        std::vector<f32> rgb;
    };
    std::vector<level> levels_;  ///< from backdrop_side on, each with half the side of the one before it
};

}  // namespace carousel::kernels
