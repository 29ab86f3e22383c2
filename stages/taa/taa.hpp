#pragma once
// Temporal anti-aliasing: each frame is mixed with the frames before it, which are its state, together with
// the matrix of the frame before. Inputs: carousel.image.linear (from light) and the surface from which it
// was made. Output: as the first input. The camera has to move by a part of a pixel per frame: the parameter
// `jitter`, 1 for a whole pixel. The motion of a surface is that of the camera. Where the surface moves
// itself, the history is limited to the colours around the pixel, so a turning mesh becomes soft.
//   frames  the newest frame has at least this part of the picture: 1 / frames [32]

#include "kernels/looks.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class taa : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void process(frame& f) override;

private:
    kernels::taa_args args_;
};

}  // namespace carousel::stages
