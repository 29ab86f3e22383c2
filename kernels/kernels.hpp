#pragma once
// The host API of all kernels: one function per kernel (or per chain of kernels that only make sense
// together). Each function enqueues its work on the queue and returns; memory that the arguments point to
// must stay valid until the queue has executed the work. Threading: to be called only by the thread that
// enqueues on the queue. All pointers must be valid on the queue's device. Result: the image is the same bit
// for bit on every device and for any number of threads, because the formulas exist only once, in
// kernels/body/. Errors: invalid arguments throw config_error before anything is enqueued; a refused launch
// throws cuda_error. The kernels limit all values that they read from ring memory to valid ones, so a slot
// that is being refilled causes a wrong picture, but no fault.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "kernels/mesh_layout.hpp"
#include "kernels/mesh_shape.hpp"
#include "kernels/motion_layout.hpp"
#include "kernels/plane_hash.hpp"
#include "kernels/scene.hpp"
#include "kernels/surface_planes.hpp"
#include "kernels/triangle_layout.hpp"

namespace carousel::kernels {

/// Largest picture side in pixels.
inline constexpr u32 max_extent = 16384;

// ---- meshes
// -------------------------------------------------------------------------------------------------------------

/// The names of the shapes, in the order of mesh_shapes (mesh_shape.hpp).
[[nodiscard]] const std::vector<std::string>& mesh_shape_names();
/// The shape called `name`. Throws config_error that lists the known names.
[[nodiscard]] mesh_shape mesh_shape_from(std::string_view name);

/// Returns the counts of a procedural mesh with about `triangles` triangles: the numbers of vertices and
/// triangles, and the size of a suitable texture. The mesh has more than `triangles` triangles only if the
/// shape's smallest form has more. Throws config_error above 2^29 triangles.
[[nodiscard]] mesh_counts procedural_counts(mesh_shape shape, u32 triangles);

/// Fills header, vertices, indices, clusters and texture of a block laid out by
/// lay_out_mesh(procedural_counts(shape, triangles)).
struct generate_mesh_args {
    mesh_shape shape = mesh_shape::bumpy_sphere;
    u32 triangles = 100'000;  ///< as for procedural_counts()
    std::byte* block = nullptr;
};
void generate_mesh(device::queue& q, const generate_mesh_args& args);

/// For meshes that were not made by generate_mesh: computes the bounds and vertex lists of a block's clusters
/// from the block's vertices and indices. If this function is not called, the bounds must be zero; the vertex
/// stage then processes every triangle.
struct bound_clusters_args {
    mesh_layout layout;
    std::byte* block = nullptr;
    bool moves = false;  ///< the vertices change in each frame: only the vertex lists are computed
};
void bound_clusters(device::queue& q, const bound_clusters_args& args);

/// For mesh files that have no texture: fills the texture of a block, and nothing else, with a neutral
/// checker pattern.
struct generate_texture_args {
    mesh_layout layout;
    std::byte* block = nullptr;
};
void generate_texture(device::queue& q, const generate_texture_args& args);

// ---- geometry
// -----------------------------------------------------------------------------------------------------------

/// How instances are placed and move. `grid`: the instances are on a square grid of side `spacing` and turn
/// about y by scene.spin radians per frame; each instance except instance 0 has its own phase. `field`: the
/// instances are about `spacing` apart in a sunflower (Vogel) spiral and move on a slow wave; each has its
/// own size and turns about its own axis by half to three halves of scene.spin per frame.
enum class arrangement : u8 { grid, field };

/// Computes model matrices as a function of the frame's number and the scene alone.
struct animate_args {
    u64 frame_number = 0;
    scene_state scene;
    u32 instance_count = 1;  ///< number of instances: 1 .. max_instances of the plane
    f32 spacing = 2.4F;
    draw_record* draw = nullptr;
    f32* models = nullptr;  ///< f32[instance_count][16]
    arrangement stand = arrangement::grid;
};
void animate_instances(device::queue& q, const animate_args& args);

// ---- vertex
// -------------------------------------------------------------------------------------------------------------

/// Culls whole clusters, transforms the remaining ones, and classifies their triangles: fills all planes of
/// `out`.
struct vertex_stage_args {
    mesh_layout mesh;
    const std::byte* mesh_block = nullptr;
    const draw_record* draw = nullptr;
    const f32* models = nullptr;
    scene_state scene;
    u32 width = 0, height = 0;  ///< pixels, 1 .. max_extent; with four samples per pixel, twice the picture's
    triangle_buffers out;
    moved_vertices moved = {};  ///< instead of the vertices in the mesh block, if not null
    /// With `moved`: private memory for one element per cluster, which receives the bounds in this pose. If
    /// null, no cluster is culled as a whole.
    cluster_bounds* moved_bounds = nullptr;
};
void vertex_stage(device::queue& q, const vertex_stage_args& args);

// ---- fragment
// -----------------------------------------------------------------------------------------------------------

/// For tests: sends every triangle through one path. All paths give the same image.
enum class raster_path : u8 { automatic, small, medium, large };

/// Bytes of private device memory that fragment_stage needs on a queue of this kind. One block serves all
/// frames of one queue, because a queue runs in order.
/// `layers`: surface_planes::layer_count. `samples`: as in fragment_stage_args.
[[nodiscard]] u64 fragment_scratch_bytes(device::device_kind kind, u32 width, u32 height, u32 layers = 0,
                                         u32 samples = 1);

/// For measurements: the thread that enqueues calls `call(with)` at a point between two launches.
struct mark {
    void (*call)(void*) = nullptr;
    void* with = nullptr;
};

/// Clears, rasterises and shades one picture: every pixel of `color` is written.
struct fragment_stage_args {
    mesh_layout mesh;
    const std::byte* mesh_block = nullptr;
    triangle_buffers in;        ///< vertex_stage has written these planes; fragment_stage only reads them
    scene_state scene;          ///< the same as the vertex stage's
    u32 width = 0, height = 0;  ///< of the picture, in pixels
    u8* color = nullptr;        ///< u8[height][width][4]; null: `surface` is written
    std::byte* scratch = nullptr;
    u64 scratch_bytes = 0;  ///< at least fragment_scratch_bytes()
    raster_path path = raster_path::automatic;
    /// called only on CUDA, after the last raster kernel; the CPU has no such point, because it resolves each
    /// tile while the tile is in the cache
    mark before_resolve = {};
    /// The G-buffer that is written if `color` is null: all planes, or only the depth.
    surface_planes surface = {};
    surface_look look = {};
    moved_vertices moved = {};  ///< the same as the vertex stage's
    /// Samples per pixel, 1 or 4. With 4 the vertex stage has made the triangles for twice the width and
    /// height, and a whole G-buffer is written, with the planes `coverage` and `samples` (body/samples.hpp).
    u32 samples = 1;
};
void fragment_stage(device::queue& q, const fragment_stage_args& args);

// ---- pictures
// -----------------------------------------------------------------------------------------------------------

/// 3x3 unsharp mask in integer arithmetic. Beyond the border the nearest border pixel is used; alpha is
/// copied. `in` and `out` must not overlap.
struct sharpen_args {
    const u8* in = nullptr;  ///< u8[height][width][4]
    u8* out = nullptr;
    u32 width = 0, height = 0;
    u32 strength = 128;  ///< factor for the difference from the 3x3 mean, in units of 1/256; at most 1024
};
void sharpen(device::queue& q, const sharpen_args& args);

}  // namespace carousel::kernels
