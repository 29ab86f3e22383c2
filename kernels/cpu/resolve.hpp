// No include guard on purpose: part of cpu/simd_source.hpp. Shades the pixels of one tile, a row of 64 pixels
// at a time. Each step is a loop over the row, which the compiler vectorises.

inline constexpr u32 row = tile_width;
static_assert(row % 16 == 0, "the members below are read and written as whole vectors");

/// Adjacent pixels of one triangle form a run. The triangle's corners are fetched and transformed once per
/// run, and then copied to all pixels of the run.
struct alignas(64) shaded_row {
    u32 triangle[row];  ///< index in the mesh; 0 if nothing is visible
    u32 instance[row];  ///< no_page if nothing is visible
    u32 run[row];  ///< number of the pixel's run: 0 for the first pixel; for every other pixel the number of
                   ///< its left neighbour's run, plus 1 if a new run begins at the pixel
    u32 run_triangle[row];
    u32 index[row * 4];             ///< three vertex numbers per run, limited to valid ones
    f32 corner[3][8][row + lanes];  ///< the corners of a run, with the fields of shaded_vertex; later x, y
                                    ///< and w of the clip position replace x, y and z. A read may extend one
                                    ///< vector past the end
    f32 at[9][row];  ///< for each pixel, up to three numbers of the first corner, followed by those of the
                     ///< second and the third corner
    f32 bary[3][row];
    f32 n[3][row];
    u32 edge[row];  ///< for the wireframe: 1 if the pixel is on an edge of its triangle
    u32 color[row];
    u32 texel[4][row], fraction_x[row], fraction_y[row];
    u32 value[3][row];  ///< filtered texture value of each channel: 0..1020
    u32 runs;           ///< number of runs, rounded up to whole vectors; the last member, so that the arrays
                        ///< before it stay aligned
};
/// A range within the eight numbers that a corner has.
struct numbers {
    u32 first, count;
};
inline constexpr numbers of_position{0, 3}, of_normal{3, 3}, of_texture{6, 2};

void row_mapped(shaded_row& r, const fragment_job& job, u32 x0, u32 y);  // resolve_mapped.hpp

CAROUSEL_FORCE void find_runs(shaded_row& r, const fragment_job& job) {
    r.run[0] = 0;
    // The compiler vectorises the comparisons, but not the sums.
    for (u32 l = 1; l < row; ++l) r.run[l] = u32{r.triangle[l] != r.triangle[l - 1]};
    u32 run = 0;
    for (u32 l = 0; l < row; ++l) {
        run += r.run[l];
        r.run[l] = run;
        r.run_triangle[run] = r.triangle[l];
    }
    const u32 runs = (run + lanes) / lanes * lanes, limit = job.mesh.counts.vertex_count;
    r.runs = runs;
    for (u32 l = run + 1; l < runs; ++l) r.run_triangle[l] = 0;
#pragma GCC unroll 8
    for (u32 l = 0; l < runs; ++l)
        take4(r.index + 4 * l, job.mesh.indices + static_cast<u64>(r.run_triangle[l]) * 3);
    for (u32 i = 0; i < runs * 4; ++i) r.index[i] = r.index[i] < limit ? r.index[i] : 0U;
}

/// Loads eight vertices: to[c][l] is number c of vertex index[4 * l].
CAROUSEL_FORCE void take_vertices(f32 (*to)[row + lanes], u32 at, const shaded_vertex* vertices,
                                  const u32* index) {
#if defined(__AVX2__)
    const auto vertex = [&](u32 l) { return _mm256_loadu_ps(vertices[index[4 * l]].position); };
    // Transposes 8 x 8 words in three steps: it exchanges adjacent pairs, then groups of four, then halves.
    const __m256 v0 = vertex(0), v1 = vertex(1), v2 = vertex(2), v3 = vertex(3), v4 = vertex(4),
                 v5 = vertex(5), v6 = vertex(6), v7 = vertex(7);
    const __m256 a0 = _mm256_unpacklo_ps(v0, v1), a1 = _mm256_unpackhi_ps(v0, v1),
                 a2 = _mm256_unpacklo_ps(v2, v3), a3 = _mm256_unpackhi_ps(v2, v3);
    const __m256 a4 = _mm256_unpacklo_ps(v4, v5), a5 = _mm256_unpackhi_ps(v4, v5),
                 a6 = _mm256_unpacklo_ps(v6, v7), a7 = _mm256_unpackhi_ps(v6, v7);
    const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee),
                 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
    const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee),
                 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
    _mm256_storeu_ps(to[0] + at, _mm256_permute2f128_ps(b0, b4, 0x20)),
        _mm256_storeu_ps(to[4] + at, _mm256_permute2f128_ps(b0, b4, 0x31));
    _mm256_storeu_ps(to[1] + at, _mm256_permute2f128_ps(b1, b5, 0x20)),
        _mm256_storeu_ps(to[5] + at, _mm256_permute2f128_ps(b1, b5, 0x31));
    _mm256_storeu_ps(to[2] + at, _mm256_permute2f128_ps(b2, b6, 0x20)),
        _mm256_storeu_ps(to[6] + at, _mm256_permute2f128_ps(b2, b6, 0x31));
    _mm256_storeu_ps(to[3] + at, _mm256_permute2f128_ps(b3, b7, 0x20)),
        _mm256_storeu_ps(to[7] + at, _mm256_permute2f128_ps(b3, b7, 0x31));
#else
    for (u32 l = 0; l < 8; ++l) {
        f32 vertex[8];
        __builtin_memcpy(vertex, vertices + index[4 * l], sizeof vertex);
        for (u32 c = 0; c < 8; ++c) to[c][at + l] = vertex[c];
    }
#endif
}

/// Loads the corners of all runs and transforms their positions into clip positions.
CAROUSEL_FORCE void take_corners(shaded_row& r, const fragment_job& job, const instance_record& record) {
    const u32 runs = r.runs;
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < runs; l += 8)
            take_vertices(r.corner[k], l, job.mesh.vertices, r.index + 4 * l + k);
        for (u32 l = 0; l < runs; ++l) {
            const clip_vertex c =
                to_clip(record.clip, {r.corner[k][0][l], r.corner[k][1][l], r.corner[k][2][l]});
            r.corner[k][0][l] = c.x, r.corner[k][1][l] = c.y, r.corner[k][2][l] = c.w;
        }
    }
}

/// Distributes the corners' numbers to the pixels: at[k * count + c][l] = corner[k][first + c][run[l]]. A
/// vector of pixels spans at most as many runs as it has lanes, so one load and one permutation suffice.
CAROUSEL_FORCE void spread(shaded_row& r, numbers which) {
#if defined(__AVX512F__)
    for (u32 l = 0; l < row; l += 16) {
        const u32 first = r.run[l];
        const __m512i from =
            _mm512_sub_epi32(_mm512_load_si512(r.run + l), _mm512_set1_epi32(static_cast<i32>(first)));
        for (u32 k = 0; k < 3; ++k)
            for (u32 c = 0; c < which.count; ++c)
                _mm512_store_ps(r.at[k * which.count + c] + l,
                                _mm512_maskz_permutexvar_ps(
                                    0xffff, from, _mm512_loadu_ps(r.corner[k][which.first + c] + first)));
    }
#elif defined(__AVX2__)
    for (u32 l = 0; l < row; l += 8) {
        const u32 first = r.run[l];
        const __m256i from = _mm256_sub_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(r.run + l)),
                                              _mm256_set1_epi32(static_cast<i32>(first)));
        for (u32 k = 0; k < 3; ++k)
            for (u32 c = 0; c < which.count; ++c)
                _mm256_store_ps(
                    r.at[k * which.count + c] + l,
                    _mm256_permutevar8x32_ps(_mm256_loadu_ps(r.corner[k][which.first + c] + first), from));
    }
#else
    for (u32 k = 0; k < 3; ++k)
        for (u32 c = 0; c < which.count; ++c)
            for (u32 l = 0; l < row; ++l)
                r.at[k * which.count + c][l] = r.corner[k][which.first + c][r.run[l]];
#endif
}

/// Sets to[l] = table[at[l]] for a row. The words are read one at a time, because this costs less than the
/// vector gathers of today's processors. The empty asm statement keeps the compiler from using gathers.
template <typename Word>
CAROUSEL_FORCE void take_words(u32* to, const Word* table, const u32* at) {
#pragma GCC unroll 8
    for (u32 l = 0; l < row; ++l) {
        to[l] = table[at[l]];
        __asm__ volatile("");
    }
}

/// Loads both texels of each footprint's row at once if they are adjacent in memory, which halves the number
/// of loads.
CAROUSEL_FORCE void take_pairs(u32* left, u32* right, const u32* texels, const u32* at) {
    alignas(64) u64 pair[row];
#pragma GCC unroll 8
    for (u32 l = 0; l < row; ++l) {
        __builtin_memcpy(pair + l, texels + at[l], sizeof(u64));
        __asm__ volatile("");
    }
    for (u32 l = 0; l < row; ++l)
        left[l] = static_cast<u32>(pair[l]), right[l] = static_cast<u32>(pair[l] >> 32);
}

/// After spread(r, of_position).
CAROUSEL_FORCE clip_vertex corner_at(const shaded_row& r, u32 k, u32 l) {
    return {r.at[3 * k][l], r.at[3 * k + 1][l], r.at[3 * k + 2][l]};
}

CAROUSEL_FORCE void row_barycentrics(shaded_row& r, const fragment_job& job, u32 x0, u32 y) {
    spread(r, of_position);
    const f32 py = centre_y(job.shading, y);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b = barycentrics_at(centre_x(job.shading, x0 + l), py, corner_at(r, 0, l),
                                               corner_at(r, 1, l), corner_at(r, 2, l));
        r.bary[0][l] = b.a, r.bary[1][l] = b.b, r.bary[2][l] = b.c;
    }
}

/// Called after row_barycentrics, because it uses the corners that row_barycentrics has distributed.
CAROUSEL_FORCE void row_edges(shaded_row& r, const fragment_job& job, u32 x0, u32 y) {
    const f32 py = centre_y(job.shading, y), step_x = job.shading.scale_x, step_y = job.shading.scale_y;
    for (u32 l = 0; l < row; ++l) {
        const clip_vertex a = corner_at(r, 0, l), b = corner_at(r, 1, l), c = corner_at(r, 2, l);
        const f32 px = centre_x(job.shading, x0 + l);
        r.edge[l] = u32{near_edge(px, py, step_x, step_y, a, b)} |
                    u32{near_edge(px, py, step_x, step_y, b, c)} |
                    u32{near_edge(px, py, step_x, step_y, c, a)};
    }
}

/// Interpolates one of the `width` components per corner that the preceding spread() has distributed.
CAROUSEL_FORCE f32 blended(const shaded_row& r, const barycentrics& b, u32 l, u32 component, u32 width) {
    return blend(b, r.at[component][l], r.at[width + component][l], r.at[2 * width + component][l]);
}

CAROUSEL_FORCE void row_normals(shaded_row& r, const instance_record& record) {
    spread(r, of_normal);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b{r.bary[0][l], r.bary[1][l], r.bary[2][l]};
        const vec3 unit = normalised(
            turn(record.model, {blended(r, b, l, 0, 3), blended(r, b, l, 1, 3), blended(r, b, l, 2, 3)}));
        r.n[0][l] = unit.x, r.n[1][l] = unit.y, r.n[2][l] = unit.z;
    }
}

/// Computes filtered() for the three channels. Red and blue share a word as long as each fits into 16 bits.
CAROUSEL_FORCE void filter_row(const shaded_row& r, u32 (&to)[3][row]) {
    constexpr u32 pair = 0xff00ffU;
    for (u32 l = 0; l < row; ++l) {
        const u32 t00 = r.texel[0][l], t10 = r.texel[1][l], t01 = r.texel[2][l], t11 = r.texel[3][l];
        const u32 fx = r.fraction_x[l], fy = r.fraction_y[l], gx = 256U - fx, gy = 256U - fy;
        const u32 top = (t00 & pair) * gx + (t10 & pair) * fx, bottom = (t01 & pair) * gx + (t11 & pair) * fx;
        const u32 top_green = (t00 >> 8 & 255U) * gx + (t10 >> 8 & 255U) * fx,
                  bottom_green = (t01 >> 8 & 255U) * gx + (t11 >> 8 & 255U) * fx;
        to[0][l] = ((top & 0xffffU) * gy + (bottom & 0xffffU) * fy + 8192U) >> 14;
        to[1][l] = (top_green * gy + bottom_green * fy + 8192U) >> 14;
        to[2][l] = ((top >> 16) * gy + (bottom >> 16) * fy + 8192U) >> 14;
    }
}

CAROUSEL_FORCE void row_texture(shaded_row& r, const fragment_job& job) {
    const u32* const texels = reinterpret_cast<const u32*>(job.mesh.texture);
    const u32 width = job.shading.texture_width, height = job.shading.texture_height;
    spread(r, of_texture);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b{r.bary[0][l], r.bary[1][l], r.bary[2][l]};
        const texel_footprint f = footprint(blended(r, b, l, 0, 2), blended(r, b, l, 1, 2), width, height);
        r.texel[0][l] = f.y0 * width + f.x0, r.texel[1][l] = f.y0 * width + f.x1;
        r.texel[2][l] = f.y1 * width + f.x0, r.texel[3][l] = f.y1 * width + f.x1;
        r.fraction_x[l] = f.fraction_x, r.fraction_y[l] = f.fraction_y;
    }
    u32 wraps = 0;
    for (u32 l = 0; l < row; ++l) wraps |= u32{r.texel[1][l] != r.texel[0][l] + 1};
    if (wraps != 0) {
        for (u32 k = 0; k < 4; ++k) take_words(r.texel[k], texels, r.texel[k]);
    } else {
        take_pairs(r.texel[0], r.texel[1], texels, r.texel[0]);
        take_pairs(r.texel[2], r.texel[3], texels, r.texel[2]);
    }
    filter_row(r, r.value);
}

CAROUSEL_FORCE void row_lit(shaded_row& r, const fragment_job& job) {
    const shading s = job.shading;
    alignas(64) u32 at[3][row];
    alignas(64) f32 light[row];
    for (u32 l = 0; l < row; ++l) light[l] = lambert(s, {r.n[0][l], r.n[1][l], r.n[2][l]});
    for (u32 k = 0; k < 3; ++k) take_words(at[k], job.tables->decode, r.value[k]);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < row; ++l) at[k][l] = encode_index(float_of(at[k][l]) * light[l]);
    }
    for (u32 k = 0; k < 3; ++k) take_words(at[k], job.tables->encode, at[k]);
    for (u32 l = 0; l < row; ++l) r.color[l] = rgba(at[0][l], at[1][l], at[2][l]);
}

/// Computes the colours of the row's pixels that show `instance`; the values of the other pixels are not
/// used.
void row_instance(shaded_row& r, const fragment_job& job, u32 instance, u32 x0, u32 y) {
    const instance_record record = job.in.instances[instance];
    take_corners(r, job, record);
    row_barycentrics(r, job, x0, y);
    if (job.shading.wireframe != 0) row_edges(r, job, x0, y);
    row_normals(r, record);
    if (job.shading.mode == 1) {
        for (u32 l = 0; l < row; ++l) r.color[l] = shade_normal({r.n[0][l], r.n[1][l], r.n[2][l]});
    } else {
        if (job.shading.mapped != 0)
            row_mapped(r, job, x0, y);
        else
            row_texture(r, job);
        row_lit(r, job);
    }
    if (job.shading.wireframe != 0)
        for (u32 l = 0; l < row; ++l) r.color[l] = shade_wire(r.edge[l] != 0, r.color[l]);
}

void resolve_tile(const fragment_job& job, u32 tile_index, const u64* tile_keys_at) {
    const u32 width = static_cast<u32>(job.view.width), height = static_cast<u32>(job.view.height);
    const u32 x0 = tile_index % job.tiles_x * tile_width, y0 = tile_index / job.tiles_x * tile_height;
    const u32 columns = min_(width - x0, tile_width), rows = min_(height - y0, tile_height);
    const u32 triangles_of = job.mesh.counts.triangle_count;
    const u32 mode = job.shading.mode;
    shaded_row r;
    alignas(64) u32 out[row];
    for (u32 y = 0; y < rows; ++y) {
        const u64* const keys = tile_keys_at + static_cast<u64>(y) * tile_stride;
        u32 pattern[4];  // four pixels suffice, because the dither of the background has a period of four
                         // pixels and x0 is a multiple of four
        for (u32 l = 0; l < 4; ++l) pattern[l] = background(x0 + l, y0 + y, height);
        for (u32 l = 0; l < row; l += 4) __builtin_memcpy(out + l, pattern, sizeof pattern);
        // The keys of a tile are empty for pixels beyond the picture and for pixels without a triangle; no
        // triangle has the id ~0.
        u32 visible = 0;
        for (u32 l = 0; l < row; ++l) {
            const u32 id = static_cast<u32>(keys[l]);
            const bool hit = id != static_cast<u32>(empty_key);
            r.triangle[l] = hit ? id : 0U;
            r.instance[l] = hit ? 0U : no_page;
            visible |= u32{hit};
        }
        if (visible != 0 && mode == 2) {
            for (u32 l = 0; l < row; ++l) out[l] = r.instance[l] == 0 ? shade_id(r.triangle[l]) : out[l];
        } else if (visible != 0 && mode == 3) {
            for (u32 l = 0; l < row; ++l)
                out[l] =
                    r.instance[l] == 0 ? shade_depth(float_of(~static_cast<u32>(keys[l] >> 32))) : out[l];
        } else if (visible != 0 && job.in.max_instances == 1) {
            find_runs(r, job);
            row_instance(r, job, 0, x0, y0 + y);
            for (u32 l = 0; l < row; ++l) out[l] = r.instance[l] == 0 ? r.color[l] : out[l];
        } else if (visible != 0) {
            for (u32 l = 0; l < row; ++l) {
                r.instance[l] = r.instance[l] == 0 ? r.triangle[l] / triangles_of : no_page;
                r.triangle[l] %= triangles_of;
            }
            find_runs(r, job);
            for (u32 l = 0; l < columns; ++l) {
                const u32 instance = r.instance[l];
                if (instance == no_page) continue;
                row_instance(r, job, instance, x0, y0 + y);
                for (u32 m = l; m < row; ++m) {
                    const bool mine = r.instance[m] == instance;
                    out[m] = mine ? r.color[m] : out[m];
                    r.instance[m] = mine ? no_page : r.instance[m];
                }
            }
        }
        u32* const to = reinterpret_cast<u32*>(job.color) + static_cast<u64>(y0 + y) * width + x0;
        if (columns == row) {
            __builtin_memcpy(to, out, sizeof out);  // the size is constant, so this is compiled to a few
                                                    // vector stores
        } else {
            for (u32 l = 0; l < columns; ++l) to[l] = out[l];
        }
    }
}
