// No include guard on purpose: part of cpu/simd_source.hpp. Sorts triangles into the tiles that their boxes
// touch.

inline constexpr i32 many_tiles = 16;  ///< a triangle whose box touches more tiles than this is stored as a
                                       ///< special one

CAROUSEL_FORCE bool add_special(const fragment_job& job, worker_bins& bins, const screen_triangle& t,
                                u32 id) {
    const pixel_box box = box_of(t, job.view.width, job.view.height);
    if (box.empty() || double_area(t) <= 0) return true;
    if (bins.special_count == bins.special_capacity) return false;
    bins.specials[bins.special_count++] = {t, id, box};
    return true;
}

/// Clips a triangle of the mesh and adds the remaining parts. If the store does not have room for all parts,
/// none is added, so that the call can be repeated later.
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
        const screen_triangle t =
            make_triangle(project(polygon[0], job.view, 0), project(polygon[k - 1], job.view, 0),
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

/// The corners of one triangle in the format of transform_listed(): each corner has four words, which are x,
/// y, 1/w and the outcode.
struct corner_words {
    const u32* at[3];
};
using four_i32 = i32 __attribute__((vector_size(16)));
using two_u64 = u64 __attribute__((vector_size(16)));
CAROUSEL_FORCE four_i32 load_four(const u32* from) {
    four_i32 v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}
CAROUSEL_FORCE screen_vertex vertex_of(const u32* w) {
    return {static_cast<i32>(w[0]), static_cast<i32>(w[1]), float_of(w[2]), w[3]};
}
/// x and y as one 64-bit word.
CAROUSEL_FORCE u64 place_of(four_i32 v) { return __builtin_bit_cast(two_u64, v)[0]; }

/// Adds one triangle to the tiles that its box touches, or to the specials. Returns false if there is no
/// room; in this case the next round bins the triangle. Each step processes x and y in one operation.
CAROUSEL_FORCE bool bin_triangle(const fragment_job& job, worker_bins& bins, const corner_words& corners,
                                 u32 id) {
    const four_i32 p = load_four(corners.at[0]), q = load_four(corners.at[1]), r = load_four(corners.at[2]);
    const u32 any = static_cast<u32>((p | q | r)[3]);
    if (any & out_not_finite) return true;
    if (any & out_needs_clip) return add_clipped(job, bins, id);
    const four_i32 low_pq = p < q ? p : q, high_pq = p > q ? p : q;
    const four_i32 low = low_pq < r ? low_pq : r, high = high_pq > r ? high_pq : r;
    constexpr i32 half = subpixels / 2;
    four_i32 first = (low + (half - 1)) >> 8, last = (high - half) >> 8;  // as in box_of()
    const four_i32 zero{}, corner{job.view.width - 1, job.view.height - 1, 0, 0};
    first = first > zero ? first : zero;
    last = last < corner ? last : corner;
    if (place_of(last < first) != 0) return true;  // empty
    const u32 x0 = static_cast<u32>(first[0]) / tile_width, x1 = static_cast<u32>(last[0]) / tile_width;
    const u32 y0 = static_cast<u32>(first[1]) / tile_height, y1 = static_cast<u32>(last[1]) / tile_height;
    if ((x1 - x0 + 1) * (y1 - y0 + 1) > many_tiles || job.path == raster_path::large)
        return add_special(
            job, bins,
            make_triangle(vertex_of(corners.at[0]), vertex_of(corners.at[1]), vertex_of(corners.at[2])), id);
    if (bins.page_count + many_tiles > bins.page_capacity || bins.triangle_count == bins.triangle_capacity)
        return false;
    const u32 place = bins.triangle_count++;
    binned_triangle& to = bins.triangles[place];
    const bool wide = place_of(high - low > narrow_limit) != 0;
    const auto from_first = [&](four_i32 v) {
        const u64 d = place_of(v - p);
        return (static_cast<u32>(d) & 0xffffU) | (static_cast<u32>(d >> 16) & 0xffff0000U);
    };
    to.x = p[0], to.y = p[1];
    to.to_second = wide ? wide_triangle : from_first(q), to.to_third = wide ? wide_triangle : from_first(r);
    for (u32 k = 0; k < 3; ++k) to.inverse_w[k] = float_of(corners.at[k][2]);
    to.id = id;
    for (u32 y = y0; y <= y1; ++y)
        for (u32 x = x0; x <= x1; ++x) push(bins, y * job.tiles_x + x, place);
    return true;
}

/// The cluster whose vertices were transformed last, kept because adjacent list entries usually belong to one
/// cluster.
struct cluster_cache {
    u32 instance = ~0U, cluster = ~0U;
    listed_vertices vertices;
};

/// The ids of up to `batch_size` entries of the list. Here all values that were read from ring memory are
/// limited to valid ones.
struct alignas(64) listed_ids {
    u32 id[batch_size], instance[batch_size], triangle[batch_size], valid[batch_size];
    bool in_clusters;  ///< true if the entries of the batch change to another cluster at most twice, and
                       ///< every cluster of the batch has a vertex list; in this case the vertices are
                       ///< transformed once for all triangles of the batch
};

CAROUSEL_FORCE void bound_ids(listed_ids& ids, const fragment_job& job, u32 count) {
    const u32 triangles = job.mesh.counts.triangle_count, limit = static_cast<u32>(job.id_limit);
    // The unused entries of the last batch repeat its first triangle and are marked as not valid.
    for (u32 l = count; l < batch_size; ++l) ids.id[l] = ids.id[0];
    for (u32 l = 0; l < batch_size; ++l) {
        const u32 fine = u32{ids.id[l] < limit};
        ids.valid[l] = fine & u32{l < count};
        ids.triangle[l] = fine ? ids.id[l] : 0U, ids.instance[l] = 0;
    }
    if (job.in.max_instances > 1) {
        for (u32 l = 0; l < batch_size; ++l)
            ids.instance[l] = ids.triangle[l] / triangles, ids.triangle[l] -= ids.instance[l] * triangles;
    }
    u32 changes = 0;
    for (u32 l = 1; l < batch_size; ++l)
        changes += u32{((ids.triangle[l] / cluster_triangles ^ ids.triangle[l - 1] / cluster_triangles) |
                        (ids.instance[l] ^ ids.instance[l - 1])) != 0};
    const auto has_list = [&](u32 l) {
        return job.mesh.clusters[ids.triangle[l] / cluster_triangles].vertex_count != 0;
    };
    ids.in_clusters = changes <= 2 && has_list(0) && has_list(batch_size - 1);
    // If the cluster changes twice, there is a third cluster between the first and the last one; it must have
    // a list, too.
    for (u32 l = 1; changes == 2 && ids.in_clusters && l < batch_size; ++l) ids.in_clusters = has_list(l);
}

/// Bins entries [0, count). Returns the first entry for which there is no room, or count.
CAROUSEL_FORCE u32 bin_from_clusters(const fragment_job& job, worker_bins& bins, cluster_cache& cache,
                                     const listed_ids& ids, u32 count) {
    for (u32 l = 0; l < count; ++l) {
        const u32 cluster = ids.triangle[l] / cluster_triangles;
        if (cache.cluster != cluster || cache.instance != ids.instance[l]) {
            const instance_record record = job.in.instances[ids.instance[l]];
            transform_listed(cache.vertices, job.mesh, job.view, record.clip, cluster);
            cache.cluster = cluster, cache.instance = ids.instance[l];
        }
        const u32 c = job.mesh.local_corners[ids.triangle[l]];
        const u32* const words = cache.vertices.words;
        if (ids.valid[l] && !bin_triangle(job, bins,
                                          {{words + 4 * (c & 255U), words + 4 * (c >> 8 & 255U),
                                            words + 4 * (c >> 16 & 255U)}},
                                          ids.id[l]))
            return l;
    }
    return count;
}

/// The same as bin_from_clusters, for triangles that are scattered over the mesh.
u32 bin_from_mesh(const fragment_job& job, worker_bins& bins, const listed_ids& ids, u32 count) {
    batch b;
    alignas(64) i32 first[batch_size];
    alignas(64) u32 words[3][batch_size * 4];
    for (u32 l = 0; l < batch_size; ++l)
        b.valid[l] = ids.valid[l], first[l] = static_cast<i32>(ids.triangle[l]) * 3;
    gather_corners(b, job.mesh, job.view, job.in.instances, ids.instance, first);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < batch_size; l += 8)
            put_columns(words[k] + 4 * l, b.x[k] + l, b.y[k] + l, b.w[k] + l, b.code[k] + l);
    }
    for (u32 l = 0; l < count; ++l)
        if (b.valid[l] &&
            !bin_triangle(job, bins, {{words[0] + 4 * l, words[1] + 4 * l, words[2] + 4 * l}}, ids.id[l]))
            return l;
    return count;
}

u32 bin(const fragment_job& job, u32 begin, u32 end, worker_bins& bins) {
    listed_ids ids;
    cluster_cache cache;
    // entry `position` of the back part is list[back - position]
    const u64 back = job.id_limit - 1 + job.small_count;
    for (u32 start = begin; start < end; start += batch_size) {
        const u32 n = end - start < batch_size ? end - start : batch_size;
        for (u32 l = 0; l < n; ++l) {
            const u64 at = start + l < job.small_count ? u64{start} + l : back - start - l;
            ids.id[l] = job.in.list[at];
        }
        bound_ids(ids, job, n);
        const u32 done =
            ids.in_clusters ? bin_from_clusters(job, bins, cache, ids, n) : bin_from_mesh(job, bins, ids, n);
        if (done < n) return start + done;
    }
    return end;
}
