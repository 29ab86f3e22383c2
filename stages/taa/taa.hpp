#pragma once
// Temporal anti-aliasing: each frame is mixed with the frames before it, which are its state, together with
// the matrix of the frame before. Inputs: carousel.image.linear (from light) and the surface from which it
// was made; a third one, the scene (from geometry), if the mesh or its copies move: fragment then has motion
// = true. Output: as the first input. The camera has to move by a part of a pixel per frame: the parameter
// `jitter`, 1 for a whole pixel. Followed are the camera, the copies, and the vertices of a mesh that moves
// (skins, morph targets), whose matrices and pose of the frame before are in the state as well. Other motion
// (of reflections and shadows) is not followed: there the history is limited to the colours around the pixel.
//   frames  the newest frame has at least this part of what stands still in the picture: 1 / frames [32]; of
//           what moves it has at least half

#include <optional>

#include "kernels/looks.hpp"
#include "stages/scene/mesh_formats.hpp"

namespace carousel::stages {

class taa : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    kernels::taa_args args_;
    std::optional<mesh_input> scene_;
};

}  // namespace carousel::stages
