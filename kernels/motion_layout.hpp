#pragma once
// Memory of a moving mesh: the asset block "motion", which the source fills once. It has what the source
// needs to compute the pose of a frame from the frame's time (nodes, keys of an animation), and what the
// vertex stage needs to move the vertices of the mesh by a pose (influences of matrices, morph targets). Like
// mesh_layout.hpp, the offsets follow from counts that are in the frame format. All indices in the block are
// valid; the kernels limit them nevertheless.

#include "kernels/mesh_layout.hpp"

namespace carousel::kernels {

inline constexpr u32 no_motion_index = ~0U;

struct motion_counts {
    u32 nodes = 0;       ///< nodes that move a vertex, parents before children
    u32 channels = 0;    ///< animated properties of nodes, and sets of morph weights
    u32 keys = 0;        ///< numbers: the times and values of all channels
    u32 matrices = 0;    ///< matrices of a pose; 0: the mesh does not move
    u32 weights = 0;     ///< morph weights of a pose
    u32 influences = 0;  ///< pairs of a matrix and its weight
    u32 deltas = 0;      ///< differences of single vertices in morph targets
    bool operator==(const motion_counts&) const = default;
};

enum class key_interpolation : u32 { step, linear, cubic };

/// The values of one animated property at ascending times. `first_time`, `first_value`: places among the
/// keys. Each key has `width` numbers; with cubic interpolation it has an in-tangent, a value and an
/// out-tangent.
struct motion_channel {
    u32 first_time = 0, count = 0, first_value = 0, width = 0;
    key_interpolation between = key_interpolation::linear;
    u32 reserved = 0;
};
static_assert(sizeof(motion_channel) == 24);

/// A node. `channel`: of translation, rotation and scale, or no_motion_index. `values`: without a matrix,
/// translation, rotation (x, y, z, w) and scale, for properties that have no channel; with a matrix, its 3 x
/// 4 numbers, row-major.
struct motion_node {
    u32 parent = no_motion_index;  ///< less than the node's own number
    u32 has_matrix = 0;
    u32 channel[3] = {no_motion_index, no_motion_index, no_motion_index};
    u32 reserved = 0;
    f64 values[12] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0};
};
static_assert(sizeof(motion_node) == 120);

/// A matrix of the pose: that of a node, applied after the constant matrix `inner`. For a joint of a skin,
/// `inner` is the inverse bind matrix; for an instance of a mesh, that of the instance.
struct motion_matrix {
    u32 node = 0, reserved = 0;
    f64 inner[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
};
static_assert(sizeof(motion_matrix) == 104);

/// A morph weight of the pose: number `component` of a channel, or constant.
struct motion_weight {
    u32 channel = no_motion_index, component = 0;
    f32 constant = 0;
    u32 reserved = 0;
};
static_assert(sizeof(motion_weight) == 16);

/// A vertex in the space of its mesh, with the ranges of its influences, of its deltas, and of the morph
/// weights of its mesh. Vertices may share influences and deltas.
struct moving_vertex {
    shaded_vertex at;
    u32 first_influence = 0, first_delta = 0;
    u16 influence_count = 0, delta_count = 0;
    u32 first_weight = 0;
};
static_assert(sizeof(moving_vertex) == 64);

struct influence {
    u32 matrix = 0;
    f32 weight = 1;
};
static_assert(sizeof(influence) == 8);

/// What a morph target adds to a vertex at weight 1.
struct morph_delta {
    f32 position[3] = {}, normal[3] = {};
    u32 weight = 0;  ///< number of the morph target: the place after the vertex's first weight
    u32 reserved = 0;
};
static_assert(sizeof(morph_delta) == 32);

/// Byte offsets from the start of the block.
struct motion_layout {
    motion_counts counts;
    u32 vertex_count = 0;
    u64 nodes = 0, channels = 0, keys = 0, matrices = 0, weights = 0, vertices = 0, influences = 0,
        deltas = 0;
    u64 bytes = 0;
    [[nodiscard]] bool moves() const { return counts.matrices > 0; }
};

[[nodiscard]] inline constexpr motion_layout lay_out_motion(const motion_counts& counts, u32 vertex_count) {
    motion_layout l;
    l.counts = counts;
    l.vertex_count = vertex_count;
    l.channels = l.nodes + align_block(u64{counts.nodes} * sizeof(motion_node));
    l.keys = l.channels + align_block(u64{counts.channels} * sizeof(motion_channel));
    l.matrices = l.keys + align_block(u64{counts.keys} * sizeof(f32));
    l.weights = l.matrices + align_block(u64{counts.matrices} * sizeof(motion_matrix));
    l.vertices = l.weights + align_block(u64{counts.weights} * sizeof(motion_weight));
    l.influences = l.vertices + align_block(u64{vertex_count} * sizeof(moving_vertex));
    l.deltas = l.influences + align_block(u64{counts.influences} * sizeof(influence));
    l.bytes = l.deltas + align_block(u64{counts.deltas} * sizeof(morph_delta));
    return l;
}

/// The block as pointers on the device that reads it. Owns nothing.
struct motion_view {
    motion_counts counts;
    u32 vertex_count = 0;
    const motion_node* nodes = nullptr;
    const motion_channel* channels = nullptr;
    const f32* keys = nullptr;
    const motion_matrix* matrices = nullptr;
    const motion_weight* weights = nullptr;
    const moving_vertex* vertices = nullptr;
    const influence* influences = nullptr;
    const morph_delta* deltas = nullptr;
};

[[nodiscard]] inline motion_view view_motion(const motion_layout& l, const std::byte* block) {
    return {l.counts,
            l.vertex_count,
            reinterpret_cast<const motion_node*>(block + l.nodes),
            reinterpret_cast<const motion_channel*>(block + l.channels),
            reinterpret_cast<const f32*>(block + l.keys),
            reinterpret_cast<const motion_matrix*>(block + l.matrices),
            reinterpret_cast<const motion_weight*>(block + l.weights),
            reinterpret_cast<const moving_vertex*>(block + l.vertices),
            reinterpret_cast<const influence*>(block + l.influences),
            reinterpret_cast<const morph_delta*>(block + l.deltas)};
}

/// The pose of a frame, as planes: matrices f32[matrices][12], row-major 3 x 4, and weights f32[weights].
struct pose_planes {
    f32* matrices = nullptr;
    f32* weights = nullptr;
};

/// The vertices of a mesh in a pose, in the two forms in which a mesh block stores them.
struct moved_vertices {
    f32* positions = nullptr;  ///< f32[V][3]; a reader may read one word more
    shaded_vertex* vertices = nullptr;
};

/// The mesh of a block, with vertices in a pose if there are any.
[[nodiscard]] inline mesh_view view_mesh(const mesh_layout& l, const std::byte* block,
                                         const moved_vertices& moved) {
    mesh_view view = view_mesh(l, block);
    if (moved.positions != nullptr) view.positions = moved.positions, view.vertices = moved.vertices;
    return view;
}

}  // namespace carousel::kernels
