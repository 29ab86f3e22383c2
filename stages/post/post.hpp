#pragma once
// Makes a picture of linear light: bloom, exposure, tone mapping, smooth edges (FXAA).
// Input: carousel.image.linear. Output: carousel.image.rgba8.
//   smooth_edges  [true]
// The parameter `exposure` multiplies the light, `bloom` is the part of it that is scattered [0.06],
// `tone_map` is "neutral" (Khronos PBR Neutral), "aces" or "linear" ["neutral"].

#include "kernels/looks.hpp"
#include "stages/scene/picture_parameters.hpp"

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
