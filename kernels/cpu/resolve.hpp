// No include guard by purpose: part of cpu/simd_source.hpp. Shades the pixels of one tile, a row of 64 at a time, each step as
// a loop over the row that the compiler turns into vectors and gathers.

inline constexpr u32 row = tile_width;

struct alignas(64) shaded_row {
    u32 triangle[row];      ///< index in the mesh; 0 where nothing is visible
    u32 instance[row];      ///< no_page where nothing is visible
    u32 index[row * 4];     ///< three vertices a pixel, bounded
    u32 found[3][row * 4];  ///< attributes of the three corners, four words a pixel
    f32 bary[3][row];
    f32 n[3][row];
    u32 edge[row];          ///< wireframe: 1 on an edge of its triangle
    u32 color[row];
    u32 texel[4][row], fraction_x[row], fraction_y[row];
    u32 value[3][row];      ///< filtered texture, a channel: 0..1020
};

void row_mapped(shaded_row& r, const fragment_job& job, const instance_record& record, u32 x0, u32 y);  // resolve_mapped.hpp

/// Attribute `component` of corner k at pixel l, as take_attribute() left it.
CAROUSEL_FORCE f32 attribute(const shaded_row& r, u32 k, u32 l, u32 component) { return float_of(r.found[k][4 * l + component]); }

/// Fetches an attribute of `width` floats for all corners of all pixels. The last texture coordinates may be read two words
/// over, into the indices.
CAROUSEL_FORCE void take_attribute(shaded_row& r, const f32* values, u32 width) {
    for (u32 k = 0; k < 3; ++k) {
#pragma GCC unroll 8
        for (u32 l = 0; l < row; ++l) take4(r.found[k] + 4 * l, values + static_cast<u64>(r.index[4 * l + k]) * width);
    }
}

/// to[l] = table[at[l]] for a row, one word at a time: cheaper than the vector gathers of today's processors, which the empty
/// statement keeps the compiler from using.
CAROUSEL_FORCE void take_words(u32* to, const u32* table, const u32* at) {
#pragma GCC unroll 8
    for (u32 l = 0; l < row; ++l) {
        to[l] = table[at[l]];
        __asm__ volatile("");
    }
}

CAROUSEL_FORCE void row_barycentrics(shaded_row& r, const fragment_job& job, const instance_record& record, u32 x0, u32 y) {
    const u32 limit = job.mesh.counts.vertex_count;
#pragma GCC unroll 8
    for (u32 l = 0; l < row; ++l) take4(r.index + 4 * l, job.mesh.indices + static_cast<u64>(r.triangle[l]) * 3);
    for (u32 i = 0; i < row * 4; ++i) r.index[i] = r.index[i] < limit ? r.index[i] : 0U;
    take_attribute(r, job.mesh.positions, 3);
    const f32 py = centre_y(job.shading, y);
    for (u32 l = 0; l < row; ++l) {
        clip_vertex c[3];
        for (u32 k = 0; k < 3; ++k)
            c[k] = to_clip(record.clip, {attribute(r, k, l, 0), attribute(r, k, l, 1), attribute(r, k, l, 2)});
        const barycentrics b = barycentrics_at(centre_x(job.shading, x0 + l), py, c[0], c[1], c[2]);
        r.bary[0][l] = b.a, r.bary[1][l] = b.b, r.bary[2][l] = b.c;
    }
}

/// After row_barycentrics, whose corners it uses.
CAROUSEL_FORCE void row_edges(shaded_row& r, const fragment_job& job, const instance_record& record, u32 x0, u32 y) {
    const f32 py = centre_y(job.shading, y), step_x = job.shading.scale_x, step_y = job.shading.scale_y;
    for (u32 l = 0; l < row; ++l) {
        clip_vertex c[3];
        for (u32 k = 0; k < 3; ++k)
            c[k] = to_clip(record.clip, {attribute(r, k, l, 0), attribute(r, k, l, 1), attribute(r, k, l, 2)});
        const f32 px = centre_x(job.shading, x0 + l);
        r.edge[l] = u32{near_edge(px, py, step_x, step_y, c[0], c[1])} | u32{near_edge(px, py, step_x, step_y, c[1], c[2])} |
                    u32{near_edge(px, py, step_x, step_y, c[2], c[0])};
    }
}

CAROUSEL_FORCE f32 blended(const shaded_row& r, const barycentrics& b, u32 l, u32 component) {
    return blend(b, attribute(r, 0, l, component), attribute(r, 1, l, component), attribute(r, 2, l, component));
}

CAROUSEL_FORCE void row_normals(shaded_row& r, const fragment_job& job, const instance_record& record) {
    take_attribute(r, job.mesh.normals, 3);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b{r.bary[0][l], r.bary[1][l], r.bary[2][l]};
        const vec3 unit = normalised(turn(record.model, {blended(r, b, l, 0), blended(r, b, l, 1), blended(r, b, l, 2)}));
        r.n[0][l] = unit.x, r.n[1][l] = unit.y, r.n[2][l] = unit.z;
    }
}

CAROUSEL_FORCE void row_texture(shaded_row& r, const fragment_job& job) {
    const u32* const texels = reinterpret_cast<const u32*>(job.mesh.texture);
    const u32 width = job.shading.texture_width, height = job.shading.texture_height;
    take_attribute(r, job.mesh.texcoords, 2);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b{r.bary[0][l], r.bary[1][l], r.bary[2][l]};
        const texel_footprint f = footprint(blended(r, b, l, 0), blended(r, b, l, 1), width, height);
        r.texel[0][l] = f.y0 * width + f.x0, r.texel[1][l] = f.y0 * width + f.x1;
        r.texel[2][l] = f.y1 * width + f.x0, r.texel[3][l] = f.y1 * width + f.x1;
        r.fraction_x[l] = f.fraction_x, r.fraction_y[l] = f.fraction_y;
    }
    for (u32 k = 0; k < 4; ++k) take_words(r.texel[k], texels, r.texel[k]);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < row; ++l) {
            r.value[k][l] =
                filtered(r.texel[0][l], r.texel[1][l], r.texel[2][l], r.texel[3][l], 8 * k, r.fraction_x[l], r.fraction_y[l]);
        }
    }
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
    if (job.shading.wireframe != 0) row_edges(r, job, record, x0, y);
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

void resolve_tile(const fragment_job& job, u32 tile_index) {
    const tile_place tile = place_of(job, tile_index);
    const u32 width = static_cast<u32>(job.view.width), height = static_cast<u32>(job.view.height);
    const u32 x0 = static_cast<u32>(tile.x), y0 = static_cast<u32>(tile.y);
    const u32 columns = min_(width - x0, tile_width), rows = min_(height - y0, tile_height);
    const u32 triangles_of = job.mesh.counts.triangle_count;
    const u32 mode = job.shading.mode;
    shaded_row r;
    alignas(64) u32 out[row];
    for (u32 y = 0; y < rows; ++y) {
        const u64* const keys = tile.keys + static_cast<u64>(y) * tile_stride;
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
