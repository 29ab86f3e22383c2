#pragma once
// Rasterises triangles, and shades them or describes their surface.
// Input: carousel.triangles. Output: carousel.image.rgba8 of the pipeline's size, or with output = "surface"
// its G-buffer, carousel.surface. Asset: mesh (texture coordinates, normals, base colour).
//   output          "picture" or "surface" ["picture"]
// With output = "surface":
//   materials       names of the materials of the instances, in turn (material_table.hpp); a mesh with
//                   materials of its own (full_materials of geometry) has those instead ["textured"]
//   layers          transparent surfaces per pixel that are shown, the nearest ones: 1 to 4; of meshes with
//                   full_materials [4]
//   motion          the G-buffer has also the numbers of the triangles, from which the stage taa finds where
//                   surfaces that move were before [false]
//   floor           height of an infinite floor; no key: no floor
//   floor_material  ["concrete"]

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
    bool surface_ = false;
    u32 layers_ = 0;
    kernels::surface_look appearance_;
    const std::byte* block_ = nullptr;
    std::unique_ptr<device::mapping> scratch_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
