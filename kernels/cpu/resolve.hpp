// No include guard by purpose: part of cpu/simd_source.hpp. Shades the pixels of one tile, a row of 64 at a time, each step as
// a loop over the row that the compiler turns into vectors and gathers.

inline constexpr u32 row = tile_width;
inline constexpr u32 lanes = 16;  ///< of the widest vectors: arrays of runs are read so far over their end

static_assert(row % 16 == 0, "the members below are read and written as whole vectors");

/// Neighbouring pixels of one triangle are a run: its corners are fetched and transformed once, and spread over its pixels.
struct alignas(64) shaded_row {
    u32 triangle[row];       ///< index in the mesh; 0 where nothing is visible
    u32 instance[row];       ///< no_page where nothing is visible
    u32 run[row];            ///< the run that a pixel belongs to: from 0 on, equal to its left neighbour's or one more
    u32 run_triangle[row + lanes];
    u32 index[row * 4];      ///< three vertices a run, bounded
    u32 found[3][row * 4];   ///< attributes of the three corners, four words a run
    f32 of_run[9][row + lanes];  ///< three numbers of each corner, corner by corner
    f32 at[9][row];              ///< the same, a pixel
    f32 bary[3][row];
    f32 n[3][row];
    u32 edge[row];           ///< wireframe: 1 on an edge of its triangle
    u32 color[row];
    u32 texel[4][row], fraction_x[row], fraction_y[row];
    u32 value[3][row];       ///< filtered texture, a channel: 0..1020
    u32 runs;                ///< rounded up to whole vectors; last: the arrays in front of it stay aligned
};

void row_mapped(shaded_row& r, const fragment_job& job, const instance_record& record, u32 x0, u32 y);  // resolve_mapped.hpp

CAROUSEL_FORCE void find_runs(shaded_row& r, const fragment_job& job) {
    r.run[0] = 0;
    for (u32 l = 1; l < row; ++l) r.run[l] = u32{r.triangle[l] != r.triangle[l - 1]};  // on vectors; the sums one by one
    u32 run = 0;
    for (u32 l = 0; l < row; ++l) {
        run += r.run[l];
        r.run[l] = run;
        r.run_triangle[run] = r.triangle[l];
    }
    r.runs = (run + lanes) / lanes * lanes;
    for (u32 l = run + 1; l < r.runs; ++l) r.run_triangle[l] = 0;
    const u32 limit = job.mesh.counts.vertex_count;
#pragma GCC unroll 8
    for (u32 l = 0; l < r.runs; ++l) take4(r.index + 4 * l, job.mesh.indices + static_cast<u64>(r.run_triangle[l]) * 3);
    for (u32 i = 0; i < r.runs * 4; ++i) r.index[i] = r.index[i] < limit ? r.index[i] : 0U;
}

/// Attribute `component` of corner k of run l, as take_attribute() left it.
CAROUSEL_FORCE f32 attribute(const shaded_row& r, u32 k, u32 l, u32 component) { return float_of(r.found[k][4 * l + component]); }

/// Fetches an attribute of `width` floats for all corners of all runs. The last texture coordinates may be read two words
/// over, into the indices.
CAROUSEL_FORCE void take_attribute(shaded_row& r, const f32* values, u32 width) {
    for (u32 k = 0; k < 3; ++k) {
#pragma GCC unroll 8
        for (u32 l = 0; l < r.runs; ++l) take4(r.found[k] + 4 * l, values + static_cast<u64>(r.index[4 * l + k]) * width);
    }
}

/// at[c][l] = of_run[c][run[l]]. A vector of pixels spans no more runs than it has lanes, so one permutation of one load does it.
CAROUSEL_FORCE void spread(shaded_row& r, u32 components) {
#if defined(__AVX512F__)
    for (u32 l = 0; l < row; l += 16) {
        const u32 first = r.run[l];
        const __m512i which = _mm512_sub_epi32(_mm512_load_si512(r.run + l), _mm512_set1_epi32(static_cast<i32>(first)));
        for (u32 c = 0; c < components; ++c) _mm512_store_ps(r.at[c] + l, _mm512_maskz_permutexvar_ps(0xffff, which, _mm512_loadu_ps(r.of_run[c] + first)));
    }
#elif defined(__AVX2__)
    for (u32 l = 0; l < row; l += 8) {
        const u32 first = r.run[l];
        const __m256i which = _mm256_sub_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(r.run + l)), _mm256_set1_epi32(static_cast<i32>(first)));
        for (u32 c = 0; c < components; ++c) _mm256_store_ps(r.at[c] + l, _mm256_permutevar8x32_ps(_mm256_loadu_ps(r.of_run[c] + first), which));
    }
#else
    for (u32 c = 0; c < components; ++c)
        for (u32 l = 0; l < row; ++l) r.at[c][l] = r.of_run[c][r.run[l]];
#endif
}

/// The attribute of `width` floats of each corner to at[corner * width + component], a pixel.
CAROUSEL_FORCE void spread_attribute(shaded_row& r, const f32* values, u32 width) {
    take_attribute(r, values, width);
    for (u32 k = 0; k < 3; ++k)
        for (u32 c = 0; c < width; ++c)
            for (u32 l = 0; l < r.runs; ++l) r.of_run[k * width + c][l] = attribute(r, k, l, c);
    spread(r, 3 * width);
}

/// to[l] = table[at[l]] for a row, one word at a time: cheaper than the vector gathers of today's processors, which the empty
/// statement keeps the compiler from using.
template <typename Word>
CAROUSEL_FORCE void take_words(u32* to, const Word* table, const u32* at) {
#pragma GCC unroll 8
    for (u32 l = 0; l < row; ++l) {
        to[l] = table[at[l]];
        __asm__ volatile("");
    }
}

/// Both texels of each footprint's row where they are neighbours in memory: half the loads.
CAROUSEL_FORCE void take_pairs(u32* left, u32* right, const u32* texels, const u32* at) {
    alignas(64) u64 pair[row];
#pragma GCC unroll 8
    for (u32 l = 0; l < row; ++l) {
        __builtin_memcpy(pair + l, texels + at[l], sizeof(u64));
        __asm__ volatile("");
    }
    for (u32 l = 0; l < row; ++l) left[l] = static_cast<u32>(pair[l]), right[l] = static_cast<u32>(pair[l] >> 32);
}

CAROUSEL_FORCE clip_vertex corner_at(const shaded_row& r, u32 k, u32 l) { return {r.at[3 * k][l], r.at[3 * k + 1][l], r.at[3 * k + 2][l]}; }

/// The corners' clip positions, a pixel: what corner_at() gives.
CAROUSEL_FORCE void spread_corners(shaded_row& r, const fragment_job& job, const instance_record& record) {
    take_attribute(r, job.mesh.positions, 3);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < r.runs; ++l) {
            const clip_vertex c = to_clip(record.clip, {attribute(r, k, l, 0), attribute(r, k, l, 1), attribute(r, k, l, 2)});
            r.of_run[3 * k][l] = c.x, r.of_run[3 * k + 1][l] = c.y, r.of_run[3 * k + 2][l] = c.w;
        }
    }
    spread(r, 9);
}

CAROUSEL_FORCE void row_barycentrics(shaded_row& r, const fragment_job& job, const instance_record& record, u32 x0, u32 y) {
    spread_corners(r, job, record);
    const f32 py = centre_y(job.shading, y);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b = barycentrics_at(centre_x(job.shading, x0 + l), py, corner_at(r, 0, l), corner_at(r, 1, l), corner_at(r, 2, l));
        r.bary[0][l] = b.a, r.bary[1][l] = b.b, r.bary[2][l] = b.c;
    }
}

/// After row_barycentrics, whose corners it uses.
CAROUSEL_FORCE void row_edges(shaded_row& r, const fragment_job& job, u32 x0, u32 y) {
    const f32 py = centre_y(job.shading, y), step_x = job.shading.scale_x, step_y = job.shading.scale_y;
    for (u32 l = 0; l < row; ++l) {
        const clip_vertex a = corner_at(r, 0, l), b = corner_at(r, 1, l), c = corner_at(r, 2, l);
        const f32 px = centre_x(job.shading, x0 + l);
        r.edge[l] = u32{near_edge(px, py, step_x, step_y, a, b)} | u32{near_edge(px, py, step_x, step_y, b, c)} |
                    u32{near_edge(px, py, step_x, step_y, c, a)};
    }
}

/// Component of `width` of the attribute that was spread last.
CAROUSEL_FORCE f32 blended(const shaded_row& r, const barycentrics& b, u32 l, u32 component, u32 width) {
    return blend(b, r.at[component][l], r.at[width + component][l], r.at[2 * width + component][l]);
}

CAROUSEL_FORCE void row_normals(shaded_row& r, const fragment_job& job, const instance_record& record) {
    spread_attribute(r, job.mesh.normals, 3);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b{r.bary[0][l], r.bary[1][l], r.bary[2][l]};
        const vec3 unit = normalised(turn(record.model, {blended(r, b, l, 0, 3), blended(r, b, l, 1, 3), blended(r, b, l, 2, 3)}));
        r.n[0][l] = unit.x, r.n[1][l] = unit.y, r.n[2][l] = unit.z;
    }
}

/// filtered() of the three channels, red and blue at once as long as they fit into 16 bits.
CAROUSEL_FORCE void filter_row(const shaded_row& r, u32 (&to)[3][row]) {
    constexpr u32 pair = 0xff00ffU;
    for (u32 l = 0; l < row; ++l) {
        const u32 t00 = r.texel[0][l], t10 = r.texel[1][l], t01 = r.texel[2][l], t11 = r.texel[3][l];
        const u32 fx = r.fraction_x[l], fy = r.fraction_y[l], gx = 256U - fx, gy = 256U - fy;
        const u32 top = (t00 & pair) * gx + (t10 & pair) * fx, bottom = (t01 & pair) * gx + (t11 & pair) * fx;
        const u32 top_green = (t00 >> 8 & 255U) * gx + (t10 >> 8 & 255U) * fx, bottom_green = (t01 >> 8 & 255U) * gx + (t11 >> 8 & 255U) * fx;
        to[0][l] = ((top & 0xffffU) * gy + (bottom & 0xffffU) * fy + 8192U) >> 14;
        to[1][l] = (top_green * gy + bottom_green * fy + 8192U) >> 14;
        to[2][l] = ((top >> 16) * gy + (bottom >> 16) * fy + 8192U) >> 14;
    }
}

CAROUSEL_FORCE void row_texture(shaded_row& r, const fragment_job& job) {
    const u32* const texels = reinterpret_cast<const u32*>(job.mesh.texture);
    const u32 width = job.shading.texture_width, height = job.shading.texture_height;
    spread_attribute(r, job.mesh.texcoords, 2);
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

/// Colours of all pixels of the row that show `instance`; the others' lanes hold something and are not taken.
CAROUSEL_FORCE void row_instance(shaded_row& r, const fragment_job& job, u32 instance, u32 x0, u32 y) {
    const instance_record record = job.in.instances[instance];
    row_barycentrics(r, job, record, x0, y);
    if (job.shading.wireframe != 0) row_edges(r, job, x0, y);
    row_normals(r, job, record);
    if (job.shading.mode == 1) {
        for (u32 l = 0; l < row; ++l) r.color[l] = shade_normal({r.n[0][l], r.n[1][l], r.n[2][l]});
    } else {
        if (job.shading.mapped != 0)
            row_mapped(r, job, record, x0, y);
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
        u32 visible = 0;
        for (u32 l = 0; l < row; ++l) {
            const u32 id = static_cast<u32>(keys[l]);
            const bool hit = l < columns && keys[l] != empty_key;
            r.triangle[l] = hit ? id : 0U;
            r.instance[l] = hit ? 0U : no_page;
            visible += u32{hit};
            out[l] = background(x0 + l, y0 + y, height);
        }
        if (visible > 0 && mode == 2) {
            for (u32 l = 0; l < row; ++l) out[l] = r.instance[l] == 0 ? shade_id(r.triangle[l]) : out[l];
        } else if (visible > 0 && mode == 3) {
            for (u32 l = 0; l < row; ++l)
                out[l] = r.instance[l] == 0 ? shade_depth(float_of(~static_cast<u32>(keys[l] >> 32))) : out[l];
        } else if (visible > 0) {
            if (job.in.max_instances > 1) {
                for (u32 l = 0; l < row; ++l) {
                    r.instance[l] = r.instance[l] == 0 ? r.triangle[l] / triangles_of : no_page;
                    r.triangle[l] %= triangles_of;
                }
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
            __builtin_memcpy(to, out, sizeof out);  // of constant size: a few vector stores
        } else {
            for (u32 l = 0; l < columns; ++l) to[l] = out[l];
        }
    }
}
