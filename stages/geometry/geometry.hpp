#pragma once
// The source stage. It makes the mesh once, in the asset block. For each frame it computes the matrices of
// the mesh's instances, only from the frame's number and scene. Input: none. Output: carousel.scene. Makes
// the asset mesh. Settings:
//   mesh       bumpy-sphere, fractal-terrain, torus-knots, quad-stack, quad-stack-front-first, triangle-soup,
//              long-slivers, or the path of an .obj, .gltf, .glb or .ply file ["bumpy-sphere"]
//   triangles  number of triangles of a procedural mesh, approximately [100000]
//   texture    auto (the mesh's own, or white for a file that names none), checker, white, or the path of a
//              PNG or JPEG ["auto"]
//   filter     auto (trilinear for pictures, bilinear for the shapes' own textures), bilinear, or trilinear:
//              mip-mapped ["auto"]
//   full_materials  true: all properties of a file's materials are read, for a stage fragment with output =
//              "surface"; false: base colours. For texture = "auto" only [false]
//   copies     instances of the mesh [1]
//   arrangement  of the copies: grid, or field (sunflower pattern, each instance tumbling in its own way)
//                ["grid"]
//   spacing    of the copies; the mesh has radius 1 [2.4]

#include "stages/geometry/mesh_source.hpp"
#include "stages/scene/mesh_formats.hpp"
#include "stages/scene/scene_parameters.hpp"

namespace carousel::stages {

class geometry : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void load_asset(std::string_view name, std::span<std::byte> memory, environment& env) override;
    void process(frame& f) override;

private:
    mesh_source mesh_;
    u32 instances_ = 1;
    f32 spacing_ = 0;
    kernels::arrangement stand_ = kernels::arrangement::grid;
};

}  // namespace carousel::stages
