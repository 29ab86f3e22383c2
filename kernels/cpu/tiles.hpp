// No include guard on purpose: part of cpu/simd_source.hpp. Rasterises one tile of 64x32 keys.

/// Corner of a tile in pixels.
struct tile_place {
    i32 x, y;
    u64* keys;
};

CAROUSEL_FORCE tile_place place_of(const fragment_job& job, u32 tile, u64* keys) {
    return {static_cast<i32>(tile % job.tiles_x * tile_width),
            static_cast<i32>(tile / job.tiles_x * tile_height), keys};
}

CAROUSEL_FORCE pixel_box within(const tile_place& tile, const pixel_box& box) {
    return {max_(box.x0, tile.x), max_(box.y0, tile.y),
            min_(box.x1, tile.x + static_cast<i32>(tile_width) - 1),
            min_(box.y1, tile.y + static_cast<i32>(tile_height) - 1)};
}

/// The smaller key. The highest bit of every key is set, because no depth is negative; it is also set in the
/// empty key. So a signed comparison, which vectors support, gives the same order.
CAROUSEL_FORCE u64 nearer(u64 a, u64 b) { return static_cast<i64>(a) < static_cast<i64>(b) ? a : b; }

inline constexpr i32 span = 16;  ///< pixels per vector step

CAROUSEL_FORCE bool none_negative(i32 a, i32 b, i32 c) { return (a | b | c) >= 0; }
CAROUSEL_FORCE bool none_negative(f64 a, f64 b, f64 c) { return (a >= 0) & (b >= 0) & (c >= 0); }

/// Rasterises the box of one triangle, 16 pixels of a row at a time. `Int` is the type of edge_functions: i32
/// or f64. An f64 can represent the value of every edge exactly (50 bits) and is converted to the same float
/// as the integer. Unlike 64-bit integers, f64 has vector instructions even below AVX-512.
template <typename Int>
CAROUSEL_FORCE void raster_rows(const tile_place& tile, const screen_triangle& t, const pixel_box& box,
                                u32 id) {
    const edge_functions<Int> edges = edges_at<Int>(t, box.x0, box.y0);
    const depth_plane depth = make_depth(t, double_area(t));
    Int row[3];
    for (int i = 0; i < 3; ++i) row[i] = edges.e[i];
    for (i32 y = box.y0; y <= box.y1; ++y) {
        u64* const keys = tile.keys + static_cast<u64>(y - tile.y) * tile_stride - tile.x;
        for (i32 x = box.x0; x <= box.x1; x += span) {
            const Int along = static_cast<Int>(x - box.x0);
            Int e[3];
            bool outside = false;
            const Int reach = static_cast<Int>(min_(span - 1, box.x1 - x));
            for (int i = 0; i < 3; ++i) {
                e[i] = row[i] + along * edges.step_x[i];
                outside |= max_<Int>(e[i], e[i] + reach * edges.step_x[i]) + edges.bias[i] < 0;
            }
            if (outside) continue;
            u64* const at = keys + x;
            const i32 last = box.x1 - x;
            for (i32 l = 0; l < span; ++l) {
                const Int k = static_cast<Int>(l <= last ? l : 0);
                const Int e0 = e[0] + k * edges.step_x[0], e1 = e[1] + k * edges.step_x[1],
                          e2 = e[2] + k * edges.step_x[2];
                const bool covered =
                    none_negative(e0 + edges.bias[0], e1 + edges.bias[1], e2 + edges.bias[2]) & (l <= last);
                const u64 key = make_key(depth_bits(depth, static_cast<f32>(e1), static_cast<f32>(e2)), id);
                const u64 limit = covered ? key : empty_key;
                at[l] = nearer(limit, at[l]);
            }
        }
        for (int i = 0; i < 3; ++i) row[i] += edges.step_y[i];
    }
}

CAROUSEL_FORCE void raster_any(const tile_place& tile, const screen_triangle& t, const pixel_box& box, u32 id,
                               bool wide) {
    if (!wide && narrow(t)) {
        raster_rows<i32>(tile, t, box, id);
    } else {
        raster_rows<f64>(tile, t, box, id);
    }
}

/// Returns the depth (1/w) of the farthest pixel of a tile; 0 if a pixel is empty.
CAROUSEL_FORCE f32 farthest_of(const tile_place& tile, const viewport& view) {
    const i32 columns = min_(static_cast<i32>(tile_width), view.width - tile.x),
              rows = min_(static_cast<i32>(tile_height), view.height - tile.y);
    u32 largest = 0;
    for (i32 y = 0; y < rows; ++y) {
        const u64* const keys = tile.keys + y * static_cast<i32>(tile_stride);
        for (i32 x = 0; x < columns; ++x) largest = max_(largest, static_cast<u32>(keys[x] >> 32));
    }
    return float_of(~largest);
}

/// Returns true if the triangle may cover a pixel of the box at a depth nearer than `farthest`.
CAROUSEL_FORCE bool may_show(const screen_triangle& t, const pixel_box& box, f32 farthest) {
    if (nearest_corner(t) < farthest) return false;
    const edge_functions<f64> e = edges_at<f64>(t, box.x0, box.y0);
    const i32 columns = box.x1 - box.x0 + 1, rows = box.y1 - box.y0 + 1;
    for (u32 i = 0; i < 3; ++i) {
        const f64 along = (columns - 1) * e.step_x[i], down = (rows - 1) * e.step_y[i];
        // the value at the corner of the box at which the edge function is largest
        if (e.e[i] + e.bias[i] + max_(along, 0.0) + max_(down, 0.0) < 0) return false;
    }
    return !(nearest_among(make_depth_bound(t, make_depth(t, double_area(t)), e), 0, 0, columns, rows) <
             farthest);
}

/// The set-up values of many triangles in one tile, one triangle per lane.
struct alignas(64) stamps {
    i32 e[3][batch_size], step_x[3][batch_size], step_y[3][batch_size], bias[3][batch_size];
    f32 inverse_area[batch_size], wa[batch_size], to_b[batch_size], to_c[batch_size];
    i32 at[batch_size], columns[batch_size], rows[batch_size];
    i32 small_columns[batch_size], small_rows[batch_size];  ///< 0 unless the triangle is small
    u32 kind[batch_size];
};
enum stamp_kind : u32 {
    stamp_none,
    stamp_small,
    stamp_slim,
    stamp_rows  ///< all other triangles that touch the tile; such a triangle may have no area
};
inline constexpr i32 stamp_side = 4, slim_columns = 8;

CAROUSEL_FORCE void set_up_stamps(stamps& s, const batch& b, const fragment_job& job, const tile_place& tile,
                                  i32 side) {
    const i32 right = min_(tile.x + static_cast<i32>(tile_width), job.view.width) - 1;
    const i32 bottom = min_(tile.y + static_cast<i32>(tile_height), job.view.height) - 1;
    for (u32 l = 0; l < batch_size; ++l) {
        const screen_triangle t = make_triangle(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l));
        const pixel_box whole = box_of(t, job.view.width, job.view.height);
        const i32 x0 = max_(whole.x0, tile.x), y0 = max_(whole.y0, tile.y);
        const i32 x1 = min_(whole.x1, right), y1 = min_(whole.y1, bottom);
        const i32 columns = x1 - x0 + 1, rows = y1 - y0 + 1;
        // The area is computed in 32 bits, which is exact for narrow triangles. Below AVX-512 there are no
        // vector instructions for 64-bit products and their conversion to float, so 64-bit products would
        // make the whole loop scalar. The other triangles go to raster_any, which does its own set-up.
        const i32 area = static_cast<i32>(static_cast<u32>(t.bx - t.ax) * static_cast<u32>(t.cy - t.ay) -
                                          static_cast<u32>(t.by - t.ay) * static_cast<u32>(t.cx - t.ax));
        const u32 slim = u32{narrow(t)};
        const u32 alive = b.valid[l] & u32{columns > 0} & u32{rows > 0} & (u32{area > 0} | (slim ^ 1U));
        const u32 little = u32{columns <= side} & u32{rows <= side} & slim;
        const u32 kind =
            alive * (little ? u32{stamp_small}
                            : (u32{columns <= slim_columns} & slim ? u32{stamp_slim} : u32{stamp_rows}));
        s.kind[l] = kind;
        // If a triangle is not narrow, its values may wrap here; they are not used.
        const u32 ox = static_cast<u32>(x0 * subpixels + subpixels / 2),
                  oy = static_cast<u32>(y0 * subpixels + subpixels / 2);
        const u32 px[3] = {static_cast<u32>(t.ax) - ox, static_cast<u32>(t.bx) - ox,
                           static_cast<u32>(t.cx) - ox};
        const u32 py[3] = {static_cast<u32>(t.ay) - oy, static_cast<u32>(t.by) - oy,
                           static_cast<u32>(t.cy) - oy};
        for (u32 i = 0; i < 3; ++i) {
            const u32 from = (i + 1) % 3, to = (i + 2) % 3;
            const u32 dx = px[to] - px[from], dy = py[to] - py[from];
            s.e[i][l] = static_cast<i32>(dy * px[from] - dx * py[from]);
            s.step_x[i][l] = static_cast<i32>(0U - dy * subpixels);
            s.step_y[i][l] = static_cast<i32>(dx * subpixels);
            const u32 top_left =
                u32{static_cast<i32>(dy) < 0} | (u32{dy == 0} & u32{static_cast<i32>(dx) > 0});
            s.bias[i][l] = top_left ? 0 : -1;
        }
        const depth_plane d = make_depth(t, area);
        s.inverse_area[l] = d.inverse_area, s.wa[l] = d.wa, s.to_b[l] = d.to_b, s.to_c[l] = d.to_c;
        s.at[l] = (y0 - tile.y) * static_cast<i32>(tile_stride) + (x0 - tile.x);
        s.columns[l] = columns, s.rows[l] = rows;
        s.small_columns[l] = kind == stamp_small ? columns : 0,
        s.small_rows[l] = kind == stamp_small ? rows : 0;
    }
}

/// Draws a vector of small triangles. Each step computes the coverage and the depth of one pixel of every
/// triangle, and then updates the keys one after another.
CAROUSEL_FORCE void raster_stamps(const stamps& s, const batch& b, const tile_place& tile, u32 first) {
    i32 columns = 0, rows = 0;
    for (u32 l = first; l < first + lanes; ++l) {
        columns = max_(columns, s.small_columns[l]);
        rows = max_(rows, s.small_rows[l]);
    }
    alignas(64) u32 line[3][lanes], e[3][lanes];  // including the biases
    alignas(64) u32 depth[lanes];
    alignas(64) i32 covered[lanes];
    for (u32 i = 0; i < 3; ++i) {
#pragma GCC unroll 1  // here and below: the compiler does not vectorise fully unrolled loops
        for (u32 l = 0; l < lanes; ++l)
            line[i][l] = static_cast<u32>(s.e[i][first + l]) + static_cast<u32>(s.bias[i][first + l]);
    }
    for (i32 y = 0; y < rows; ++y) {
        for (u32 i = 0; i < 3; ++i) {
#pragma GCC unroll 1
            for (u32 l = 0; l < lanes; ++l)
                e[i][l] = line[i][l], line[i][l] += static_cast<u32>(s.step_y[i][first + l]);
        }
        for (i32 x = 0; x < columns; ++x) {
#pragma GCC unroll 1
            for (u32 l = 0; l < lanes; ++l) {
                const u32 at = first + l, e0 = e[0][l], e1 = e[1][l], e2 = e[2][l];
                const depth_plane d{s.inverse_area[at], s.wa[at], s.to_b[at], s.to_c[at]};
                depth[l] =
                    depth_bits(d, static_cast<f32>(static_cast<i32>(e1 - static_cast<u32>(s.bias[1][at]))),
                               static_cast<f32>(static_cast<i32>(e2 - static_cast<u32>(s.bias[2][at]))));
                const u32 in = u32{static_cast<i32>(e0 | e1 | e2) >= 0} & u32{x < s.small_columns[at]} &
                               u32{y < s.small_rows[at]};
                covered[l] = in ? -1 : 0;
                e[0][l] = e0 + static_cast<u32>(s.step_x[0][at]),
                e[1][l] = e1 + static_cast<u32>(s.step_x[1][at]);
                e[2][l] = e2 + static_cast<u32>(s.step_x[2][at]);
            }
            for (u32 mask = mask_of(covered); mask != 0; mask &= mask - 1) {
                const u32 l = static_cast<u32>(__builtin_ctz(mask)), at = first + l;
                u64& slot = tile.keys[s.at[at] + y * static_cast<i32>(tile_stride) + x];
                slot = nearer(make_key(depth[l], b.id[at]), slot);
            }
        }
    }
}

/// Draws one triangle of at most eight columns, using its set-up values, one row of pixels per step.
CAROUSEL_FORCE void raster_slim(const stamps& s, const batch& b, const tile_place& tile, u32 at) {
    alignas(32) u32 e[3][slim_columns];
    for (u32 i = 0; i < 3; ++i) {
        const u32 first = static_cast<u32>(s.e[i][at]), step = static_cast<u32>(s.step_x[i][at]);
#pragma GCC unroll 1
        // Values outside the box may wrap around; those pixels are masked out.
        for (u32 l = 0; l < slim_columns; ++l) e[i][l] = first + l * step;
    }
    const u32 bias[3] = {static_cast<u32>(s.bias[0][at]), static_cast<u32>(s.bias[1][at]),
                         static_cast<u32>(s.bias[2][at])};
    const u32 down[3] = {static_cast<u32>(s.step_y[0][at]), static_cast<u32>(s.step_y[1][at]),
                         static_cast<u32>(s.step_y[2][at])};
    const depth_plane d{s.inverse_area[at], s.wa[at], s.to_b[at], s.to_c[at]};
    const i32 columns = s.columns[at], rows = s.rows[at];
    const u32 id = b.id[at];
    for (i32 y = 0; y < rows; ++y) {
        u64* const keys = tile.keys + s.at[at] + y * static_cast<i32>(tile_stride);
#pragma GCC unroll 1
        for (i32 l = 0; l < slim_columns; ++l) {
            const i32 sign =
                static_cast<i32>((e[0][l] + bias[0]) | (e[1][l] + bias[1]) | (e[2][l] + bias[2]));
            const u32 depth = depth_bits(d, static_cast<f32>(static_cast<i32>(e[1][l])),
                                         static_cast<f32>(static_cast<i32>(e[2][l])));
            const u64 key = (sign >= 0) & (l < columns) ? make_key(depth, id) : empty_key;
            keys[l] = nearer(key, keys[l]);
        }
        for (u32 i = 0; i < 3; ++i) {
#pragma GCC unroll 1
            for (u32 l = 0; l < slim_columns; ++l) e[i][l] += down[i];
        }
    }
}

/// Loads the triangles of a batch from the records that binning has stored.
CAROUSEL_FORCE void take_binned(batch& b, const fragment_job& job, const binned_triangle* triangles,
                                u32* places, u32 count) {
    alignas(64) u32 to_second[batch_size], to_third[batch_size];
    for (u32 l = count; l < (count + 7) / 8 * 8; ++l) places[l] = places[0];
    for (u32 l = 0; l < count; l += 8) {
        take_columns({{b.x[0] + l, b.y[0] + l, to_second + l, to_third + l}},
                     [&](u32 i) { return &triangles[places[l + i]].x; });
        take_columns({{b.w[0] + l, b.w[1] + l, b.w[2] + l, b.id + l}},
                     [&](u32 i) { return triangles[places[l + i]].inverse_w; });
    }
    u32 wide = 0;
    for (u32 l = 0; l < batch_size; ++l) {
        const u32 second = l < count ? to_second[l] : 0, third = l < count ? to_third[l] : 0;
        b.x[1][l] = b.x[0][l] + (static_cast<i32>(second << 16) >> 16),
        b.y[1][l] = b.y[0][l] + (static_cast<i32>(second) >> 16);
        b.x[2][l] = b.x[0][l] + (static_cast<i32>(third << 16) >> 16),
        b.y[2][l] = b.y[0][l] + (static_cast<i32>(third) >> 16);
        b.code[0][l] = b.code[1][l] = b.code[2][l] = 0;
        b.valid[l] = u32{l < count};
        wide |= u32{second == wide_triangle};
    }
    if (wide == 0) return;
    for (u32 l = 0; l < count; ++l) {
        if (to_second[l] != wide_triangle) continue;
        const u32 instance = b.id[l] / job.mesh.counts.triangle_count;
        const u32* const index =
            job.mesh.indices + static_cast<u64>(b.id[l] - instance * job.mesh.counts.triangle_count) * 3;
        const instance_record& record = job.in.instances[instance];
        for (u32 k = 0; k < 3; ++k) {
            const f32* const p = job.mesh.positions + static_cast<u64>(index[k]) * 3;
            const screen_vertex v = transform_vertex(record.clip, {p[0], p[1], p[2]}, job.view);
            b.x[k][l] = v.x, b.y[k][l] = v.y, b.w[k][l] = v.inverse_w;
        }
    }
}

CAROUSEL_FORCE void raster_batch(const fragment_job& job, const tile_place& tile,
                                 const binned_triangle* triangles, u32* places, batch& b, stamps& s,
                                 u32 count) {
    take_binned(b, job, triangles, places, count);
    const i32 side = job.path == raster_path::small ? static_cast<i32>(tile_width)
                                                    : (job.path == raster_path::medium ? 0 : stamp_side);
    set_up_stamps(s, b, job, tile, side);
    for (u32 first = 0; first < count; first += lanes) raster_stamps(s, b, tile, first);
    for (u32 l = 0; l < count; ++l) {
        if (s.kind[l] == stamp_slim) raster_slim(s, b, tile, l);
        if (s.kind[l] != stamp_rows) continue;
        const screen_triangle t = make_triangle(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l));
        if (double_area(t) > 0)
            raster_any(tile, t, within(tile, box_of(t, job.view.width, job.view.height)), b.id[l], false);
    }
}

void raster_tile(const fragment_job& job, u32 tile_index, u64* tile_keys_at, bool first_round) {
    const tile_place tile = place_of(job, tile_index, tile_keys_at);
    if (first_round) {
        for (u64 i = 0; i < tile_keys; ++i) tile.keys[i] = empty_key;
    }
    batch b{};  // the unused entries of a short batch are computed as well, but their results are not used
    stamps s;
    u32 places[batch_size];
    for (u32 w = 0; w < job.workers; ++w) {
        const worker_bins& bins = job.bins[w];
        u32 count = 0;
        for (u32 page = bins.heads[tile_index]; page != no_page; page = bins.pages[page].next) {
            for (u32 i = 0; i < bins.pages[page].count; ++i) {
                places[count++] = bins.pages[page].places[i];
                if (count == batch_size) {
                    raster_batch(job, tile, bins.triangles, places, b, s, count);
                    count = 0;
                }
            }
        }
        if (count > 0) raster_batch(job, tile, bins.triangles, places, b, s, count);
        u32 drawn = 0;
        f32 farthest = 0.0F;
        for (u32 i = 0; i < bins.special_count; ++i) {
            const special_triangle& t = bins.specials[i];
            const pixel_box box = within(tile, t.box);
            if (box.empty() || !may_show(t.triangle, box, farthest)) continue;
            raster_any(tile, t.triangle, box, t.id, job.path == raster_path::large);
            if (++drawn % 8 == 0) farthest = farthest_of(tile, job.view);
        }
    }
}
