// No include guard by purpose: part of cpu/simd_source.hpp, inside the namespace of one instruction set.
// Brings triangles as they stand on the screen into structure-of-arrays batches: from the mesh by their indices, or from the
// vertices of their cluster, transformed once.

inline constexpr u32 batch_size = 64;

struct alignas(64) batch {
    u32 id[batch_size];
    i32 x[3][batch_size], y[3][batch_size];
    f32 w[3][batch_size];
    u32 code[3][batch_size];
    u32 valid[batch_size];  ///< 0: an id or an index out of range
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

/// Corner k of `n` triangles from positions of four words each: what transform_vertex() makes of them by one matrix.
template <u32 n>
CAROUSEL_FORCE void transform_corner(batch& b, u32 k, const u32* found, const viewport& view_in, const f32* clip_in) {
    const viewport view = view_in;  // copies: what is stored can't change them
    f32 clip[12];
    for (u32 i = 0; i < 12; ++i) clip[i] = clip_in[i];
    alignas(64) f32 px[n], py[n], pz[n];
    for (u32 l = 0; l < n; ++l) {
        px[l] = float_of(found[4 * l]), py[l] = float_of(found[4 * l + 1]), pz[l] = float_of(found[4 * l + 2]);
    }
    alignas(64) i32 x[n], y[n];
    alignas(64) f32 w[n];
    alignas(64) u32 code[n];
    for (u32 l = 0; l < n; ++l) {
        const screen_vertex v = transform_vertex(clip, {px[l], py[l], pz[l]}, view);
        x[l] = v.x, y[l] = v.y, w[l] = v.inverse_w, code[l] = v.outcode;
    }
    for (u32 l = 0; l < n; ++l) b.x[k][l] = x[l], b.y[k][l] = y[l], b.w[k][l] = w[l], b.code[k][l] = code[l];
}

/// The vertices of a cluster on the screen, in the order of its list; four words each.
struct alignas(64) listed_vertices {
    u32 words[cluster_vertices * 4];
};

CAROUSEL_FORCE void transform_listed(listed_vertices& out, const mesh_view& mesh, const viewport& view, const f32* clip, u32 cluster) {
    constexpr u32 step = 16;
    const cluster_bounds bounds = mesh.clusters[cluster];
    const u16* const numbers = mesh.local_vertices + static_cast<u64>(cluster) * cluster_vertices;
    const u32 count = min_(bounds.vertex_count, cluster_vertices), last = mesh.counts.vertex_count - 1U;
    alignas(64) u32 found[step * 4];
    batch b;
    for (u32 start = 0; start < count; start += step) {
#pragma GCC unroll 8
        for (u32 l = 0; l < step; ++l) {
            const u32 number = min_(bounds.first_vertex + numbers[start + l], last);  // beyond the list: zeros, the first vertex
            take4(found + 4 * l, mesh.positions + static_cast<u64>(number) * 3);
        }
        transform_corner<step>(b, 0, found, view, clip);
        for (u32 l = 0; l < step; ++l) {
            u32* const to = out.words + 4 * (start + l);
            to[0] = static_cast<u32>(b.x[0][l]), to[1] = static_cast<u32>(b.y[0][l]), to[2] = bits_of(b.w[0][l]), to[3] = b.code[0][l];
        }
    }
}

/// The corners of some triangles as transform_listed() left them.
struct alignas(64) taken_corners {
    u32 words[3][batch_size * 4];
};

/// Those of triangles [begin, end) of the batch; `corners[l]` as in the mesh.
CAROUSEL_FORCE void take_listed(taken_corners& t, const listed_vertices& from, const u32* corners, u32 begin, u32 end) {
    for (u32 l = begin; l < end; ++l) {
        const u32 c = corners[l];
        take4(t.words[0] + 4 * l, from.words + 4 * (c & 255U));
        take4(t.words[1] + 4 * l, from.words + 4 * (c >> 8 & 255U));
        take4(t.words[2] + 4 * l, from.words + 4 * (c >> 16 & 255U));
    }
}

CAROUSEL_FORCE void spread_taken(batch& b, const taken_corners& t) {
    for (u32 k = 0; k < 3; ++k) {
        const u32* const words = t.words[k];
        for (u32 l = 0; l < batch_size; ++l) {
            b.x[k][l] = static_cast<i32>(words[4 * l]), b.y[k][l] = static_cast<i32>(words[4 * l + 1]);
            b.w[k][l] = float_of(words[4 * l + 2]), b.code[k][l] = words[4 * l + 3];
        }
    }
}

/// Corners of `batch_size` triangles, made from the mesh. first[l]: word of the mesh's indices where triangle l's begin; instance[l]:
/// which record's matrix. Both are within bounds; the indices are checked here.
CAROUSEL_FORCE void gather_corners(batch& b, const mesh_view& mesh, const viewport& view, const instance_record* records,
                                   const u32* instance, const i32* first) {
    const u32 limit = mesh.counts.vertex_count;
    alignas(64) u32 index[batch_size * 4];
    alignas(64) u32 found[batch_size * 4];
#pragma GCC unroll 8
    for (u32 l = 0; l < batch_size; ++l) take4(index + 4 * l, mesh.indices + first[l]);
    u32 others = 0;
    for (u32 l = 0; l < batch_size; ++l) others |= instance[l] ^ instance[0];
    const instance_record record = records[instance[0]];
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < batch_size; ++l) {
            const u32 fine = u32{index[4 * l + k] < limit};
            index[4 * l + k] = fine ? index[4 * l + k] : 0U;
            b.valid[l] &= fine;
        }
#pragma GCC unroll 8
        for (u32 l = 0; l < batch_size; ++l) take4(found + 4 * l, mesh.positions + static_cast<u64>(index[4 * l + k]) * 3);
        if (others == 0) {
            transform_corner<batch_size>(b, k, found, view, record.clip);
            continue;
        }
        for (u32 l = 0; l < batch_size; ++l) {
            const vec3 p{float_of(found[4 * l]), float_of(found[4 * l + 1]), float_of(found[4 * l + 2])};
            const screen_vertex v = transform_vertex(records[instance[l]].clip, p, view);
            b.x[k][l] = v.x, b.y[k][l] = v.y, b.w[k][l] = v.inverse_w, b.code[k][l] = v.outcode;
        }
    }
}
