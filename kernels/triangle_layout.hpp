#pragma once
// The data between the render stages, as plain arrays: geometry -> vertex ("carousel.scene"), vertex ->
// fragment ("carousel.triangles"), fragment -> display ("carousel.image.rgba8"). Each format is a list of
// planes with element type and shape; a stage copies them into its ring::frame_format (kernels must not
// include ring/). The vertex stage sends the visible triangles as their numbers, 4 bytes per triangle. Both
// stages compute the corners of a triangle from the mesh by the same function (body/transform.hpp), with the
// same result bit for bit. The fragment stage computes them again because this costs less than writing and
// reading 48 bytes per triangle. The planes have room for the worst case: each triangle needs only one place
// in `list`, because the fragment stage does the clipping. So no queue between the stages can overflow, and
// no triangle is dropped silently.

#include <array>
#include <vector>

#include "core/types.hpp"
#include "kernels/mesh_layout.hpp"

namespace carousel::kernels {

enum class scalar : u8 { u8_, u32_, i32_, f32_ };

struct plane_spec {
    const char* name;
    scalar type;
    std::vector<u64> shape;  ///< shape[0] is the slowest-varying dimension
};

// ---- geometry -> vertex
// -------------------------------------------------------------------------------------------------

inline constexpr const char* scene_format = "carousel.scene";

/// Plane 0 of a scene: what to draw. Kernels read the count and clamp it to the capacity in their arguments.
struct draw_record {
    u32 instance_count = 0;
    u32 reserved[15] = {};
};
static_assert(sizeof(draw_record) == 64);

/// Planes: 0 `draw` u32[16] (draw_record), 1 `models` f32[max_instances][16] (row-major, affine, uniform
/// scale).
[[nodiscard]] inline std::vector<plane_spec> scene_planes(u32 max_instances) {
    return {{"draw", scalar::u32_, {16}}, {"models", scalar::f32_, {max_instances, 16}}};
}

// ---- vertex -> fragment
// -------------------------------------------------------------------------------------------------

inline constexpr const char* triangle_format = "carousel.triangles";

/// One transformed vertex. A vertex is computed by the stage that needs it, and is never stored. x and y are
/// in units of 1/256 pixel, with y down; the centre of the top left pixel is at (128, 128).
struct alignas(16) screen_vertex {
    i32 x, y;
    f32 inverse_w;  ///< 1 / view depth; linear on the screen, and larger for nearer points
    u32 outcode;    ///< body/transform.hpp
};
static_assert(sizeof(screen_vertex) == 16);

/// Matrices of one instance, row-major 3x4. `clip` computes x, y and w (= view depth); `model` gives world
/// space.
struct instance_record {
    f32 clip[12];
    f32 model[12];
};
static_assert(sizeof(instance_record) == 96);

/// Plane 0. The sum small + large + culled + not_finite + bad_index is the number of triangles of all
/// instances that are drawn.
struct triangle_counters {
    u32 small;   ///< number of entries at the front of `list`
    u32 large;   ///< number of entries at the back of `list`, which is filled backwards: large triangles, and
                 ///< triangles that need clipping
    u32 culled;  ///< number of triangles that are back faces, or are outside the view, or have no pixel
                 ///< centre in their bounding box
    u32 not_finite;      ///< dropped: NaN or infinite vertices
    u32 bad_index;       ///< number of triangles that are dropped because one of their indices is not that of
                         ///< a vertex of the mesh
    u32 instance_count;  ///< number of instances drawn
    u32 reserved[10];
};
static_assert(sizeof(triangle_counters) == 64);

/// Planes: 0 `counters` u32[16] (triangle_counters), 1 `instances` f32[I][24] (instance_record), 2 `list`
/// u32[I*T] (triangle id = instance * T + index in the mesh). The stages refuse empty meshes, so no dimension
/// is 0.
[[nodiscard]] inline std::vector<plane_spec> triangle_planes(const mesh_counts& mesh, u32 max_instances) {
    const u64 i = max_instances;
    return {{"counters", scalar::u32_, {16}},
            {"instances", scalar::f32_, {i, 24}},
            {"list", scalar::u32_, {i * mesh.triangle_count}}};
}

/// The planes as pointers.
struct triangle_buffers {
    triangle_counters* counters = nullptr;
    instance_record* instances = nullptr;
    u32* list = nullptr;
    u32 max_instances = 0;
};

// ---- fragment -> display
// ------------------------------------------------------------------------------------------------

inline constexpr const char* image_format = "carousel.image.rgba8";

/// Plane 0 `color` u8[h][w][4]: RGBA, sRGB encoded, alpha 255, top row first.
[[nodiscard]] inline std::vector<plane_spec> image_planes(u32 width, u32 height) {
    return {{"color", scalar::u8_, {height, width, 4}}};
}

}  // namespace carousel::kernels
