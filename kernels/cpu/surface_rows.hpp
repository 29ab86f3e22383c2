// No include guard on purpose: part of cpu/looks_source.hpp. The G-buffer of one tile, a row of pixels at a
// time: the floor and the pixels without a surface in vectors; the pixels of the mesh are collected, and
// their corners are read one by one and then computed in vectors.

static_assert(row == tile_width);

void depth_tile(const surface_job& j, u32 x0, u32 y0, u32 y1, const u64* keys) {
    const u32 columns = min_(j.width - x0, row);
    alignas(64) f32 depth[row];
    for (u32 y = y0; y < y1; ++y, keys += tile_stride) {
        for (u32 l = 0; l < row; ++l) depth[l] = depth_of(keys[l]);
        put_row(j.out.depth + static_cast<u64>(y) * j.width + x0, depth, columns);
    }
}

/// What all pixels of a material without a texture have.
struct plain_surface {
    u32 albedo, material;
};
CAROUSEL_FORCE plain_surface plain_of(const cpu_tables& tables, const instance_material& m) {
    return {tinted(tables, no_texture, m), pack_material(m)};
}

struct alignas(64) surface_row {
    f32 depth[row];
    u32 albedo[row], normal[row], material[row], emission[row], shown[row];
    u32 on_floor[row], on_mesh[row];
    // elements that show the mesh, without gaps
    u32 place[row], id[row], instance[row], triangle[row];
    f32 px[row], py[row];                         ///< positions in the picture
    f32 position[3][3][row], normals[3][3][row];  ///< [corner][component]
    u32 missing[row];                             ///< 1 until found[] is set
    u32 found[row];                               ///< the packed normals
    u32 count;
};

#if defined(__FMA__)
/// Reads the corners of the collected pixels.
CAROUSEL_FORCE void take_corners(surface_row& r, const surface_job& j) {
    const u32 padded = (r.count + 15) / 16 * 16, limit = j.mesh.counts.vertex_count;
    for (u32 l = r.count; l < padded; ++l) r.id[l] = r.id[0];
    for (u32 l = 0; l < padded; ++l) {
        r.instance[l] = r.id[l] / j.mesh.counts.triangle_count;
        r.triangle[l] = r.id[l] - r.instance[l] * j.mesh.counts.triangle_count;
        r.missing[l] = 1;
    }
    for (u32 l = 0; l < padded; ++l) {
        const u32* const index = j.mesh.indices + static_cast<u64>(r.triangle[l]) * 3;
        for (u32 k = 0; k < 3; ++k) {
            const u32 i = index[k] < limit ? index[k] : 0U;
            const shaded_vertex& v = j.mesh.vertices[i];
            for (u32 c = 0; c < 3; ++c) {
                r.position[k][c][l] = v.position[c];
                r.normals[k][c][l] = v.normal[c];
            }
        }
    }
}

/// Sets found[] of the pixels that show `instance`.
CAROUSEL_FORCE void find_normals(surface_row& r, const surface_job& j, u32 instance) {
    const u32 padded = (r.count + 15) / 16 * 16;
    const instance_record record = j.instances[instance];
    for (u32 l = 0; l < padded; ++l) {
        const auto three = [l](const f32(&v)[3][row]) __attribute__((always_inline)) {
            return vec3{v[0][l], v[1][l], v[2][l]};
        };
        const clip_vertex a = to_clip(record.clip, three(r.position[0])),
                          b = to_clip(record.clip, three(r.position[1])),
                          c = to_clip(record.clip, three(r.position[2]));
        const barycentrics at = barycentrics_at(r.px[l], r.py[l], a, b, c);
        const u32 packed =
            normal_between(at, record.model, three(r.normals[0]), three(r.normals[1]), three(r.normals[2]));
        const bool mine = r.instance[l] == instance;
        r.found[l] = mine ? packed : r.found[l];
        r.missing[l] = mine ? 0U : r.missing[l];
    }
}

#endif

/// Computes the collected elements.
CAROUSEL_FORCE void row_mesh(surface_row& r, const surface_job& j, const cpu_tables& tables,
                             const plain_surface* plain) {
#if defined(__FMA__)
    take_corners(r, j);
    for (u32 l = 0; l < r.count; ++l) {
        if (r.missing[l] != 0) find_normals(r, j, r.instance[l]);
    }
#else
    // A fused operation is a function call here, so nothing may be computed in vain.
    for (u32 l = 0; l < r.count; ++l) {
        const surface_triangle t = surface_triangle_of(j, r.id[l]);
        const barycentrics b = barycentrics_at(r.px[l], r.py[l], t.c[0], t.c[1], t.c[2]);
        const shaded_vertex* const v = j.mesh.vertices;
        r.instance[l] = t.instance;
        r.found[l] = normal_between(b, j.instances[t.instance].model, normal_of(v[t.index[0]]),
                                    normal_of(v[t.index[1]]), normal_of(v[t.index[2]]));
    }
#endif
    for (u32 l = 0; l < r.count; ++l) {
        const u32 at = r.place[l], number = r.instance[l] % j.look.material_count;
        r.normal[at] = r.found[l];
        r.albedo[at] = plain[number].albedo, r.material[at] = plain[number].material;
        const instance_material& m = j.look.materials[number];
        if (m.textured != 0) {
            const f32 px = r.px[l], py = r.py[l];
            const surface_triangle t = surface_triangle_of(j, r.id[l]);
            r.albedo[at] =
                textured_albedo(j, tables, t, barycentrics_at(px, py, t.c[0], t.c[1], t.c[2]), px, py, m);
        }
    }
}

/// The same for a mesh with materials of its own.
CAROUSEL_FORCE void row_materials(surface_row& r, const surface_job& j, const cpu_tables& tables) {
    for (u32 l = 0; l < r.count; ++l) {
        const u32 at = r.place[l];
        const surface_words w =
            material_words(tables, material_surface_at(j, tables, r.id[l], r.px[l], r.py[l]));
        r.albedo[at] = w.albedo, r.normal[at] = w.normal, r.material[at] = w.material;
        r.emission[at] = w.emission;
    }
}

void surface_tile(const fragment_job& job, u32 tile, const u64* keys) {
    const surface_job& j = *job.surface;
    const u32 x0 = tile % job.tiles_x * tile_width, y0 = tile / job.tiles_x * tile_height;
    const u32 columns = min_(j.width - x0, row), y1 = min_(y0 + tile_height, j.height);
    if (j.out.albedo == nullptr) return depth_tile(j, x0, y0, y1, keys);
    const cpu_tables tables{job.tables};
    if (shows_marks(j)) {
        for (u32 y = y0; y < y1; ++y)
            for (u32 x = 0; x < columns; ++x)
                surface_pixel(j, tables, keys[(y - y0) * tile_stride + x], x0 + x, y);
        return;
    }
    plain_surface plain[max_instance_materials];
    for (u32 i = 0; i < j.look.material_count; ++i) plain[i] = plain_of(tables, j.look.materials[i]);
    const plain_surface floor = plain_of(tables, j.look.floor_material);
    const bool has_materials = j.mesh.materials != nullptr;
    const u64 limit = has_materials ? j.all_ids : j.id_limit;
    const u32 upwards = pack_normal({0.0F, 1.0F, 0.0F});
    surface_row r;
    for (u32 l = 0; l < row; ++l) r.place[l] = 0, r.id[l] = 0;
    for (u32 y = y0; y < y1; ++y, keys += tile_stride) {
        const f32 py = centre_y(j.shade, y);
        for (u32 l = 0; l < row; ++l) {
            const f32 depth = depth_of(keys[l]),
                      floor_depth = floor_at(j, centre_x(j.shade, x0 + l), py, depth);
            const bool on_floor = floor_depth > 0.0F;
            r.on_floor[l] = u32{on_floor};
            r.on_mesh[l] = u32{!on_floor} & u32{static_cast<u32>(keys[l]) < limit} & u32{l < columns};
            r.depth[l] = on_floor ? floor_depth : depth;
            r.albedo[l] = on_floor ? floor.albedo : 0U;
            r.normal[l] = on_floor ? upwards : 0U;
            r.material[l] = on_floor ? floor.material : 0U;
            r.emission[l] = 0;
            r.shown[l] = r.on_mesh[l] != 0 ? static_cast<u32>(keys[l]) : no_triangle;
        }
        r.count = 0;
        for (u32 l = 0; l < row; ++l) {
            r.place[r.count] = l, r.id[r.count] = static_cast<u32>(keys[l]);
            r.count += r.on_mesh[l];
            if (r.count == row) break;
        }
        for (u32 l = 0; l < row; ++l) r.px[l] = centre_x(j.shade, x0 + r.place[l]), r.py[l] = py;
        if (r.count > 0 && has_materials) {
            row_materials(r, j, tables);
        } else if (r.count > 0) {
            row_mesh(r, j, tables, plain);
        }
        const u64 first = static_cast<u64>(y) * j.width + x0;
        put_row(j.out.albedo + first, r.albedo, columns);
        put_row(j.out.normal + first, r.normal, columns);
        put_row(j.out.material + first, r.material, columns);
        put_row(j.out.depth + first, r.depth, columns);
        if (j.out.emission != nullptr) put_row(j.out.emission + first, r.emission, columns);
        if (j.out.triangle != nullptr) put_row(j.out.triangle + first, r.shown, columns);
    }
}
