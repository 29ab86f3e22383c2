#pragma once
// The source stage. It makes the mesh once, in the asset block. For each frame it computes the matrices of
// the mesh's instances, and the pose of a mesh that moves, only from the frame's number, time and scene.
// Input: none. Output: carousel.scene. Makes the assets mesh and, of a mesh that moves, motion. Settings:
//   mesh       bumpy-sphere, fractal-terrain, torus-knots, quad-stack, quad-stack-front-first, triangle-soup,
//              long-slivers, or the path of an .obj, .gltf, .glb or .ply file ["bumpy-sphere"]
//   triangles  number of triangles of a procedural mesh, approximately [100000]
//   texture    auto (the mesh's own, or white for a file that names none), checker, white, or the path of a
//              PNG or JPEG ["auto"]
//   filter     auto (trilinear for pictures, bilinear for the shapes' own textures), bilinear, or trilinear:
//              mip-mapped ["auto"]
//   full_materials  true: all properties of a file's materials are read, for a stage fragment with output =
//              "surface"; false: base colours. For texture = "auto" only [false]
//   clip       the animation of a file that plays: its name or number, or none [the first one]
//   speed      of the animation; below 0: backwards [1]
//   loop       false: the animation plays once and ends in its last pose [true]
//   camera     number, from 0, or name of a perspective camera of the mesh file: the initial values of eye,
//              target, up and fov_y
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
    void prepare(environment& env) override;
    void process(frame& f) override;

private:
    mesh_source mesh_;
    u32 instances_ = 1;
    f32 spacing_ = 0;
    kernels::arrangement stand_ = kernels::arrangement::grid;
    const std::byte* motion_ = nullptr;
    std::unique_ptr<device::mapping> scratch_;  ///< of a pose; one for all lanes, because the frames of one
                                                ///< queue run in order
};

}  // namespace carousel::stages
