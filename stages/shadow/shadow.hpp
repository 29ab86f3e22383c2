#pragma once
// Draws the scene as the light sees it, as a shadow map.
// Input: carousel.scene. Output: carousel.shadow. Assets: mesh, motion.
//   side    pixels per side of the map [1024]
//   radius  of the sphere around the camera's target that the map covers, in world units [2]

#include "stages/scene/mesh_formats.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class shadow : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    mesh_input mesh_;
    u32 side_ = 0;
    f32 radius_ = 0;
    const std::byte *block_ = nullptr, *motion_ = nullptr;
    ring::frame_format triangles_;
    // one of each for all lanes, because the frames of one queue run in order
    std::unique_ptr<device::mapping> between_, scratch_;
    std::unique_ptr<device::mapping> bounds_;  ///< of a moving mesh's clusters
};

}  // namespace carousel::stages
