// No include guard by purpose: part of cpu/simd_source.hpp, inside the namespace of one instruction set.
// Reads triangles through their indices into structure-of-arrays batches.

inline constexpr u32 batch_size = 64;

struct alignas(64) batch {
    u32 id[batch_size];
    i32 x[3][batch_size], y[3][batch_size];
    f32 w[3][batch_size];
    u32 code[3][batch_size];
    u32 valid[batch_size];  ///< 0: an id or an index out of range, or a coordinate beyond the limit
};

inline screen_vertex corner(const batch& b, u32 k, u32 l) { return {b.x[k][l], b.y[k][l], b.w[k][l], b.code[k][l]}; }

/// Four words, from any address; one load and one store where gathers would take each word by itself. Reads of three words may
/// run one word over: every array of a mesh block but the last, and no array of ring memory that is read so, ends its block.
using words4 = u32 __attribute__((vector_size(16)));
CAROUSEL_FORCE void take4(u32* to, const void* from) {
    words4 v;
    __builtin_memcpy(&v, from, sizeof v);
    *reinterpret_cast<words4*>(to) = v;
}

/// Corners of `batch_size` triangles. first[l]: word of the mesh's indices where triangle l's begin; base[l]: the vertex that
/// its instance begins with. Both are within bounds; the indices are checked here.
CAROUSEL_FORCE void gather_corners(batch& b, const mesh_view& mesh, const screen_vertex* vertices, const i32* first,
                                   const i32* base) {
    const u32 limit = mesh.counts.vertex_count;
    alignas(64) u32 index[batch_size * 4];
    alignas(64) u32 found[batch_size * 4];
    alignas(64) i32 at[batch_size];
#pragma GCC unroll 8
    for (u32 l = 0; l < batch_size; ++l) take4(index + 4 * l, mesh.indices + first[l]);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < batch_size; ++l) {
            const u32 i = index[4 * l + k];
            const bool fine = i < limit;
            at[l] = base[l] + static_cast<i32>(fine ? i : 0U);
            b.valid[l] &= fine ? 1U : 0U;
        }
#pragma GCC unroll 8
        for (u32 l = 0; l < batch_size; ++l) take4(found + 4 * l, vertices + at[l]);
        for (u32 l = 0; l < batch_size; ++l) {
            b.x[k][l] = static_cast<i32>(found[4 * l]);
            b.y[k][l] = static_cast<i32>(found[4 * l + 1]);
            b.w[k][l] = float_of(found[4 * l + 2]);
            b.code[k][l] = found[4 * l + 3];
        }
    }
}

/// Triangles by id, for the fragment stage: everything read from ring memory is bounded here.
CAROUSEL_FORCE void gather_ids(batch& b, const fragment_job& job, u32 count) {
    alignas(64) i32 first[batch_size];
    alignas(64) i32 base[batch_size];
    const u32 triangles = job.mesh.counts.triangle_count, vertices = job.mesh.counts.vertex_count;
    const u32 limit = static_cast<u32>(job.id_limit);
    for (u32 l = count; l < batch_size; ++l) b.id[l] = ~0U;
    if (job.in.max_instances == 1) {
        for (u32 l = 0; l < batch_size; ++l) {
            const bool fine = b.id[l] < limit;
            b.valid[l] = fine ? 1U : 0U;
            first[l] = static_cast<i32>(fine ? b.id[l] : 0U) * 3;
            base[l] = 0;
        }
    } else {
        for (u32 l = 0; l < batch_size; ++l) {
            const u32 id = b.id[l] < limit ? b.id[l] : 0U;
            b.valid[l] = b.id[l] < limit ? 1U : 0U;
            first[l] = static_cast<i32>(id % triangles) * 3;
            base[l] = static_cast<i32>(id / triangles * vertices);
        }
    }
    gather_corners(b, job.mesh, job.in.vertices, first, base);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < batch_size; ++l) {
            constexpr u32 bound = static_cast<u32>(screen_limit);
            const u32 inside =
                u32{static_cast<u32>(b.x[k][l]) + bound <= 2 * bound} & u32{static_cast<u32>(b.y[k][l]) + bound <= 2 * bound};
            b.valid[l] &= inside;
        }
    }
}
