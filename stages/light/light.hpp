#pragma once
// Shades a G-buffer: the directional light with shadows, the sky as image-based light, ambient occlusion.
// Inputs: carousel.surface, and optionally carousel.shadow. Output: carousel.image.linear.
// The lights of a mesh file (full_materials of geometry) shine as well, without shadows; they stay where the
// file has them, while the mesh turns.
//   sky        "procedural", or the path of a Radiance picture (.hdr) of all directions: its light on
//   surfaces,
//              in reflections and as background ["procedural"]
//   occlusion  radius of the ambient occlusion in world units; 0: none [0.3]
// The parameter `shading` shows normals, numbers of triangles or depths instead of light, and `wireframe`
// edges, as in pictures of fragment; the stage post changes their colours by its tone map. The parameter
// `ambient` is the brightness of the sky's light on surfaces (the visible sky stays as it is), `light` the
// direction to the sun, `sun` its irradiance [3; 0 if the mesh has lights of its own], `fog` the distance at
// which the sky hides 63 % of a surface [0: no fog]. `tint`, `roughness` and `metallic` change all materials.

#include "kernels/looks.hpp"
#include "stages/scene/picture_parameters.hpp"

namespace carousel::stages {

class light : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    kernels::light_args args_;
    u64 lights_at_ = 0;  ///< in the asset mesh
    std::string sky_file_;
    std::unique_ptr<device::mapping> sky_, backdrop_;
    std::unique_ptr<device::mapping> scratch_;  ///< one for all lanes, because the frames of one queue run in
                                                ///< order
};

}  // namespace carousel::stages
