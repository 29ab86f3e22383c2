#pragma once
// Makes a picture of linear light: bloom, exposure, tone mapping, smooth edges (FXAA).
// Input: carousel.image.linear. Output: carousel.image.rgba8.
//   smooth_edges   [true]
//   auto_exposure  the exposure follows the light of the picture: the mean of the logarithm of its luminance
//                  becomes 0.18. It is state, so that a restarted stage continues with it [false]
//   adaptation     with auto_exposure: frames in which 63 % of a change are followed [30]
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
    bool auto_exposure_ = false;
    std::unique_ptr<device::mapping> scratch_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
