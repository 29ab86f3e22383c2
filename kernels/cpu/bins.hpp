// No include guard by purpose: part of cpu/simd_source.hpp. Sorts triangles into the tiles that their boxes touch.

inline constexpr i32 many_tiles = 16;  ///< a box over more tiles than this becomes a special

CAROUSEL_FORCE bool add_special(const fragment_job& job, worker_bins& bins, const screen_triangle& t, u32 id) {
    const pixel_box box = box_of(t, job.view.width, job.view.height);
    if (box.empty() || double_area(t) <= 0) return true;
    if (bins.special_count == bins.special_capacity) return false;
    bins.specials[bins.special_count++] = {t, id, box};
    return true;
}

/// Clips from the mesh and adds what is left. All or nothing, so that a full store can be retried.
CAROUSEL_FORCE bool add_clipped(const fragment_job& job, worker_bins& bins, u32 id) {
    const u32 before = bins.special_count;
    const u32 instance = id / job.mesh.counts.triangle_count, index = id % job.mesh.counts.triangle_count;
    const instance_record& record = job.in.instances[instance];
    clip_vertex polygon[max_clipped_vertices];
    for (u32 k = 0; k < 3; ++k) {
        const u32 v = job.mesh.indices[static_cast<u64>(index) * 3 + k];
        if (v >= job.mesh.counts.vertex_count) return true;
        const f32* const p = job.mesh.positions + static_cast<u64>(v) * 3;
        polygon[k] = to_clip(record.clip, {p[0], p[1], p[2]});
    }
    const u32 n = clip_polygon(polygon, job.view);
    for (u32 k = 2; k < n; ++k) {
        const screen_triangle t = make_triangle(project(polygon[0], job.view, 0), project(polygon[k - 1], job.view, 0),
                                                project(polygon[k], job.view, 0));
        if (!add_special(job, bins, t, id)) {
            bins.special_count = before;
            return false;
        }
    }
    return true;
}

CAROUSEL_FORCE void push(worker_bins& bins, u32 tile, u32 place) {
    u32 head = bins.heads[tile];
    if (head == no_page || bins.pages[head].count == 62) {
        const u32 fresh = bins.page_count++;
        bins.pages[fresh].next = head;
        bins.pages[fresh].count = 0;
        bins.heads[tile] = head = fresh;
    }
    bin_page& page = bins.pages[head];
    page.places[page.count++] = place;
}

/// Tiles that the boxes of a batch touch, first and last of each axis; plain: 1 where nothing else is to be known of a triangle.
struct alignas(64) tile_ranges {
    i32 x0[batch_size], y0[batch_size], x1[batch_size], y1[batch_size];
    u32 plain[batch_size];
    u32 words[batch_size * 8];  ///< as binned_triangle
};

CAROUSEL_FORCE void find_tiles(tile_ranges& r, const batch& b, const fragment_job& job) {
    const u32 sorted = u32{job.path != raster_path::large};
    for (u32 l = 0; l < batch_size; ++l) {
        const pixel_box box = box_of(make_triangle(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l)), job.view.width, job.view.height);
        const i32 x0 = box.x0 / static_cast<i32>(tile_width), x1 = box.x1 / static_cast<i32>(tile_width);
        const i32 y0 = box.y0 / static_cast<i32>(tile_height), y1 = box.y1 / static_cast<i32>(tile_height);
        const u32 special = (b.code[0][l] | b.code[1][l] | b.code[2][l]) & (out_not_finite | out_needs_clip);
        // an empty box may have x1 < 0, and -1 / 64 is 0: such a one isn't plain
        r.plain[l] = b.valid[l] & sorted & u32{special == 0} & u32{box.x1 >= box.x0} & u32{box.y1 >= box.y0} &
                     u32{static_cast<u32>(x1 - x0 + 1) * static_cast<u32>(y1 - y0 + 1) <= many_tiles};  // of an empty box the product may wrap
        r.x0[l] = x0, r.x1[l] = x1, r.y0[l] = y0, r.y1[l] = y1;
    }
    for (u32 l = 0; l < batch_size; ++l) {
        const auto from_first = [&](u32 k) {
            return (static_cast<u32>(b.x[k][l] - b.x[0][l]) & 0xffffU) | static_cast<u32>(b.y[k][l] - b.y[0][l]) << 16;
        };
        const bool slim = narrow(make_triangle(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l)));
        u32* const to = r.words + 8 * l;
        to[0] = static_cast<u32>(b.x[0][l]), to[1] = static_cast<u32>(b.y[0][l]);
        to[2] = slim ? from_first(1) : wide_triangle, to[3] = slim ? from_first(2) : wide_triangle;
        to[4] = bits_of(b.w[0][l]), to[5] = bits_of(b.w[1][l]), to[6] = bits_of(b.w[2][l]);
        to[7] = b.id[l];
    }
}

/// A triangle that isn't plain. False when the bins are full and it has to wait for the next round.
CAROUSEL_FORCE bool bin_special(const fragment_job& job, worker_bins& bins, const batch& b, u32 l) {
    if (!b.valid[l]) return true;
    const u32 any = b.code[0][l] | b.code[1][l] | b.code[2][l];
    if (any & out_not_finite) return true;
    if (any & out_needs_clip) return add_clipped(job, bins, b.id[l]);
    const screen_triangle t = make_triangle(corner(b, 0, l), corner(b, 1, l), corner(b, 2, l));
    const pixel_box box = box_of(t, job.view.width, job.view.height);
    return box.empty() || add_special(job, bins, t, b.id[l]);
}

u32 bin(const fragment_job& job, u32 begin, u32 end, worker_bins& bins) {
    batch b;
    tile_ranges tiles;
    cluster_cache cache;
    const u64 back = job.id_limit - 1 + job.small_count;  // list[back - position] is entry `position` of the back part
    for (u32 start = begin; start < end; start += batch_size) {
        const u32 n = end - start < batch_size ? end - start : batch_size;
        for (u32 l = 0; l < n; ++l) {
            const u64 at = start + l < job.small_count ? u64{start} + l : back - start - l;
            b.id[l] = job.in.list[at];
        }
        gather_ids(b, job, cache, n);
        find_tiles(tiles, b, job);
        for (u32 l = 0; l < n; ++l) {
            if (tiles.plain[l] == 0) {
                if (!bin_special(job, bins, b, l)) return start + l;
                continue;
            }
            if (bins.page_count + many_tiles > bins.page_capacity || bins.triangle_count == bins.triangle_capacity) return start + l;
            const u32 place = bins.triangle_count++;
            __builtin_memcpy(static_cast<void*>(bins.triangles + place), tiles.words + 8 * l, sizeof(binned_triangle));
            for (i32 ty = tiles.y0[l]; ty <= tiles.y1[l]; ++ty)
                for (i32 tx = tiles.x0[l]; tx <= tiles.x1[l]; ++tx) push(bins, static_cast<u32>(ty) * job.tiles_x + static_cast<u32>(tx), place);
        }
    }
    return end;
}
