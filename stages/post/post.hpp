#pragma once
// Makes a picture of linear light: bloom, exposure, tone mapping, smooth edges (FXAA).
// Input: carousel.image.linear. Output: carousel.image.rgba8.
//   tone_map      "neutral" (Khronos PBR Neutral), "aces" or "linear" ["neutral"]
//   bloom         part of the light that is scattered, 0 to 1 [0.06]
//   smooth_edges  [true]
// The parameter `exposure` multiplies the light.

#include "kernels/looks.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class post : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    kernels::post_args args_;
    std::unique_ptr<device::mapping> scratch_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
