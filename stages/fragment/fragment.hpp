#pragma once
// Rasterises and shades triangles.
// Input: carousel.triangles. Output: carousel.image.rgba8 of the pipeline's size. Asset: mesh (texture
// coordinates, normals, base colour). Settings: none.

#include "stages/scene/mesh_formats.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class fragment : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    mesh_input mesh_;
    u32 width_ = 0, height_ = 0;
    const std::byte* block_ = nullptr;
    std::unique_ptr<device::mapping> scratch_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
