#pragma once
// Shades a G-buffer: the directional light with shadows, the sky as image-based light, ambient occlusion.
// Inputs: carousel.surface, and optionally carousel.shadow. Output: carousel.image.linear.
//   sun        irradiance of the directional light [3]
//   occlusion  radius of the ambient occlusion in world units; 0: none [0.3]
//   fog        distance at which the sky hides 63 % of a surface; 0: no fog [0]
// The parameter `ambient` is the brightness of the sky's light on surfaces (the visible sky stays as it is),
// `light` the direction to the sun.

#include "kernels/looks.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class light : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    kernels::light_args args_;
    std::unique_ptr<device::mapping> sky_;
    std::unique_ptr<device::mapping> scratch_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
