// No include guard on purpose: part of cpu/simd_source.hpp, inside the namespace of one instruction set.
// Collects screen triangles into structure-of-arrays batches. The corners of a triangle are read from the
// mesh by index, or taken from the vertices of the triangle's cluster, which are transformed once.

inline constexpr u32 batch_size = 64;

struct alignas(64) batch {
    u32 id[batch_size];
    i32 x[3][batch_size], y[3][batch_size];
    f32 w[3][batch_size];
    u32 code[3][batch_size];
    u32 valid[batch_size];  ///< 0 if the id or an index is out of range, or if the list position is beyond
                            ///< the number of entries
};

inline screen_vertex corner(const batch& b, u32 k, u32 l) {
    return {b.x[k][l], b.y[k][l], b.w[k][l], b.code[k][l]};
}

/// Copies four words from any address by one load and one store; a gather would load each word separately. If
/// a caller of this function or of take_columns needs only three words, the word after them is read as well.
/// This is safe because no array that is read this way is the last one of its block.
using words4 = u32 __attribute__((vector_size(16)));
CAROUSEL_FORCE void take4(u32* to, const void* from) {
    words4 v;
    __builtin_memcpy(&v, from, sizeof v);
    *reinterpret_cast<words4*>(to) = v;
}

/// Four columns into which take_columns() transposes four words from each of eight addresses: from(l)[c]
/// becomes word l of column c. The pointer to a column that is not needed may be null.
struct four_columns {
    void* at[4];
};
template <typename From>
CAROUSEL_FORCE void take_columns(const four_columns& to, const From& from) {
#if defined(__AVX2__)
    const auto both = [&](u32 l) {
        return _mm256_insertf128_ps(
            _mm256_castps128_ps256(_mm_loadu_ps(reinterpret_cast<const f32*>(from(l)))),
            _mm_loadu_ps(reinterpret_cast<const f32*>(from(l + 4))), 1);
    };
    const __m256 r0 = both(0), r1 = both(1), r2 = both(2), r3 = both(3);
    const __m256 low01 = _mm256_unpacklo_ps(r0, r1), low23 = _mm256_unpacklo_ps(r2, r3);
    const __m256 high01 = _mm256_unpackhi_ps(r0, r1), high23 = _mm256_unpackhi_ps(r2, r3);
    const auto put = [&](u32 c, __m256 v) { _mm256_storeu_ps(static_cast<f32*>(to.at[c]), v); };
    put(0, _mm256_shuffle_ps(low01, low23, 0x44)), put(1, _mm256_shuffle_ps(low01, low23, 0xee));
    put(2, _mm256_shuffle_ps(high01, high23, 0x44));
    if (to.at[3] != nullptr) put(3, _mm256_shuffle_ps(high01, high23, 0xee));
#else
    for (u32 l = 0; l < 8; ++l) {
        u32 words[4];
        __builtin_memcpy(words, from(l), sizeof words);
        for (u32 c = 0; c < 4; ++c)
            if (to.at[c] != nullptr)
                __builtin_memcpy(static_cast<std::byte*>(to.at[c]) + 4 * l, words + c, 4);
    }
#endif
}

/// The inverse of take_columns(): stores eight groups of four consecutive words.
CAROUSEL_FORCE void put_columns(u32* to, const i32* x, const i32* y, const f32* w, const u32* code) {
#if defined(__AVX2__)
    const auto column = [](const void* from) { return _mm256_load_ps(static_cast<const f32*>(from)); };
    const __m256 xs = column(x), ys = column(y), ws = column(w), codes = column(code);
    const __m256 xy_low = _mm256_unpacklo_ps(xs, ys), xy_high = _mm256_unpackhi_ps(xs, ys);
    const __m256 wc_low = _mm256_unpacklo_ps(ws, codes), wc_high = _mm256_unpackhi_ps(ws, codes);
    const __m256 v04 = _mm256_shuffle_ps(xy_low, wc_low, 0x44), v15 = _mm256_shuffle_ps(xy_low, wc_low, 0xee);
    const __m256 v26 = _mm256_shuffle_ps(xy_high, wc_high, 0x44),
                 v37 = _mm256_shuffle_ps(xy_high, wc_high, 0xee);
    const auto put = [&](u32 at, __m256 v) { _mm256_storeu_ps(reinterpret_cast<f32*>(to + at), v); };
    put(0, _mm256_permute2f128_ps(v04, v15, 0x20)), put(8, _mm256_permute2f128_ps(v26, v37, 0x20));
    put(16, _mm256_permute2f128_ps(v04, v15, 0x31)), put(24, _mm256_permute2f128_ps(v26, v37, 0x31));
#else
    for (u32 l = 0; l < 8; ++l) {
        to[4 * l] = static_cast<u32>(x[l]), to[4 * l + 1] = static_cast<u32>(y[l]);
        to[4 * l + 2] = bits_of(w[l]), to[4 * l + 3] = code[l];
    }
#endif
}

/// Points of a mesh, and the results of transforming them with one matrix as transform_vertex() does.
/// `inside`: the points' outcodes are known to be 0.
template <u32 n>
struct alignas(64) points {
    f32 px[n], py[n], pz[n];
    i32 x[n], y[n];
    f32 w[n];
    u32 code[n];
};
template <bool inside, u32 n>
CAROUSEL_FORCE void transform_points(points<n>& p, const viewport& view_in, const f32* clip_in) {
    const viewport view = view_in;  // local copies, so that the compiler knows that no store changes them
    f32 clip[12];
    for (u32 i = 0; i < 12; ++i) clip[i] = clip_in[i];
    for (u32 l = 0; l < n; ++l) {
        const clip_vertex c = to_clip(clip, {p.px[l], p.py[l], p.pz[l]});
        const screen_vertex v = project(c, view, inside ? 0U : outcode_of(c, view));
        p.x[l] = v.x, p.y[l] = v.y, p.w[l] = v.inverse_w, p.code[l] = v.outcode;
    }
}

/// The screen vertices of a cluster, in the order of its list. Each vertex has four words: x, y, 1/w,
/// outcode.
struct alignas(64) listed_vertices {
    u32 words[cluster_vertices * 4];
};

CAROUSEL_FORCE void transform_listed(listed_vertices& out, const mesh_view& mesh, const viewport& view,
                                     const f32* clip, u32 cluster) {
    constexpr u32 step = 16;
    const cluster_bounds bounds = mesh.clusters[cluster];
    const bool inside = cluster_inside(bounds, clip, view);
    const u16* const numbers = mesh.local_vertices + static_cast<u64>(cluster) * cluster_vertices;
    const u32 count = min_(bounds.vertex_count, cluster_vertices), last = mesh.counts.vertex_count - 1U;
    alignas(64) u32 number[step];
    points<step> p;
    for (u32 start = 0; start < count; start += step) {
        for (u32 l = 0; l < step; ++l)
            number[l] = min_(bounds.first_vertex + numbers[start + l],
                             last);  // unused numbers are 0 and therefore repeat the first vertex
        for (u32 l = 0; l < step; l += 8)
            take_columns({{p.px + l, p.py + l, p.pz + l, nullptr}},
                         [&](u32 k) { return mesh.positions + static_cast<u64>(number[l + k]) * 3; });
        if (inside) {
            transform_points<true>(p, view, clip);
        } else {
            transform_points<false>(p, view, clip);
        }
        for (u32 l = 0; l < step; l += 8)
            put_columns(out.words + 4 * (start + l), p.x + l, p.y + l, p.w + l, p.code + l);
    }
}

/// Copies the corners of triangles into a batch; `corners` contains the positions of the corners in the
/// cluster's list.
CAROUSEL_FORCE void spread_listed(batch& b, const listed_vertices& from, const u32* corners) {
    for (u32 k = 0; k < 3; ++k)
        for (u32 l = 0; l < batch_size; l += 8)
            take_columns({{b.x[k] + l, b.y[k] + l, b.w[k] + l, b.code[k] + l}},
                         [&](u32 i) { return from.words + 4 * (corners[l + i] >> (8 * k) & 255U); });
}

/// Computes the corners of `batch_size` triangles from the mesh. first[l] is the position of the first index
/// of triangle l in the mesh's indices; records[instance[l]] contains its matrix. The caller guarantees that
/// both are within bounds; the indices are checked here.
CAROUSEL_FORCE void gather_corners(batch& b, const mesh_view& mesh, const viewport& view,
                                   const instance_record* records, const u32* instance, const i32* first) {
    const u32 limit = mesh.counts.vertex_count;
    alignas(64) u32 index[batch_size * 4];
    points<batch_size> p;
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
        for (u32 l = 0; l < batch_size; l += 8)
            take_columns({{p.px + l, p.py + l, p.pz + l, nullptr}}, [&](u32 i) {
                return mesh.positions + static_cast<u64>(index[4 * (l + i) + k]) * 3;
            });
        if (others == 0) {
            transform_points<false>(p, view, record.clip);
        } else {
            for (u32 l = 0; l < batch_size; ++l) {
                const screen_vertex v =
                    transform_vertex(records[instance[l]].clip, {p.px[l], p.py[l], p.pz[l]}, view);
                p.x[l] = v.x, p.y[l] = v.y, p.w[l] = v.inverse_w, p.code[l] = v.outcode;
            }
        }
        for (u32 l = 0; l < batch_size; ++l)
            b.x[k][l] = p.x[l], b.y[k][l] = p.y[l], b.w[k][l] = p.w[l], b.code[k][l] = p.code[l];
    }
}
