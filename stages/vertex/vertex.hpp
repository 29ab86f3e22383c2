#pragma once
// Moves the vertices of a scene by the frame's pose (morph targets, skins, nodes), if its mesh moves.
// Transforms, culls and classifies the triangles. Input: carousel.scene. Output: carousel.triangles. Assets:
// mesh, motion.
//   samples   per pixel, 1 or 4, of all stages up to light. With 4, edges are smooth; fragment must have
//             output = "surface" [1]

#include "stages/scene/mesh_formats.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class vertex : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    mesh_input mesh_;
    u32 width_ = 0, height_ = 0;  ///< of the picture, or with four samples per pixel twice that
    const std::byte *block_ = nullptr, *motion_ = nullptr;
    std::unique_ptr<device::mapping> bounds_;  ///< of a moving mesh's clusters
};

}  // namespace carousel::stages
