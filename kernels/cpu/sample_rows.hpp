// No include guard on purpose: part of cpu/looks_source.hpp, after surface_rows.hpp. The G-buffer of one tile
// with four samples per pixel, 16 pixels at a time: element l of a row is sample l & 3 of pixel l >> 2. Only
// the first sample of each surface is computed (body/samples.hpp).

inline constexpr u32 sampled_pixels = row / 4;

struct alignas(64) sample_row {
    u64 key[row];
    u64 shown[row];
    u32 first[row];  ///< number in the pixel, 0 to 3, of the first sample that shows the same
    f32 px[row], py[row];
};

/// Finds what the samples show.
CAROUSEL_FORCE void row_shown(sample_row& s, const surface_job& j, u32 x0, u32 y) {
    const u64 limit = j.mesh.materials != nullptr ? j.all_ids : j.id_limit;
    for (u32 l = 0; l < row; ++l) {
        const f32 px = sample_x(j.shade, x0 + (l >> 2), l), py = sample_y(j.shade, y, l);
        const bool on_floor = floor_at(j, px, py, depth_of(s.key[l])) > 0.0F;
        const u64 id = static_cast<u32>(s.key[l]);
        s.shown[l] = on_floor ? shows_floor : (id < limit ? id : shows_nothing);
    }
}

/// Finds the surfaces of the row's pixels and where they are computed. `columns`: pixels in the picture.
CAROUSEL_FORCE void row_surfaces(surface_row& r, sample_row& s, const surface_job& j, u32 x0, u32 y,
                                 u32 columns) {
    for (u32 l = 0; l < row; ++l) r.on_floor[l] = 0, r.on_mesh[l] = 0, r.depth[l] = 0.0F;
    for (u32 pixel = 0; pixel < columns; ++pixel) {
        const u32 at = 4 * pixel;
        const u64* const shown = s.shown + at;
        u64 keys[4];
        for (u32 k = 0; k < 4; ++k) keys[k] = s.key[at + k];
        for (u32 k = 0; k < 4; ++k) {
            u32 mask = 0;
            for (u32 t = 0; t < 4; ++t) mask |= u32{shown[t] == shown[k]} << t;
            const u32 first = static_cast<u32>(__builtin_ctz(mask));
            s.first[at + k] = first;
            if (first != k) continue;
            const f32 px = mean_x(j.shade, x0 + pixel, mask), py = mean_y(j.shade, y, mask);
            s.px[at + k] = px, s.py[at + k] = py;
            const bool floor = shown[k] == shows_floor;
            r.depth[at + k] = floor ? floor_at(j, px, py, 0.0F) : mean_depth(keys, mask);
            r.on_floor[at + k] = u32{floor && r.depth[at + k] > 0.0F};
            r.on_mesh[at + k] = u32{shown[k] < shows_floor};
            if (mask == 15U) {
                for (u32 t = 1; t < 4; ++t) s.first[at + t] = 0;
                break;
            }
        }
    }
}

CAROUSEL_FORCE surface_record record_of(const surface_row& r, u32 l) {
    return {r.depth[l], {r.albedo[l], r.normal[l], r.material[l], r.emission[l]}};
}

void samples_tile(const fragment_job& job, u32 tile, const u64* keys) {
    const surface_job& j = *job.surface;
    const u32 x0 = tile % job.tiles_x * (tile_width / 2), y0 = tile / job.tiles_x * (tile_height / 2);
    const u32 x1 = min_(x0 + tile_width / 2, j.width), y1 = min_(y0 + tile_height / 2, j.height);
    const cpu_tables tables{job.tables};
    const auto keys_of = [&](u64* to, u32 x, u32 y) {
        const u64* const from = keys + u64{y - y0} * 2 * tile_stride + u64{x - x0} * 2;
        to[0] = from[0], to[1] = from[1], to[2] = from[tile_stride], to[3] = from[tile_stride + 1];
    };
    if (shows_marks(j)) {
        for (u32 y = y0; y < y1; ++y) {
            for (u32 x = x0; x < x1; ++x) {
                u64 of_pixel[4];
                keys_of(of_pixel, x, y);
                samples_pixel(j, tables, of_pixel, x, y);
            }
        }
        return;
    }
    plain_surface plain[max_instance_materials];
    for (u32 i = 0; i < j.look.material_count; ++i) plain[i] = plain_of(tables, j.look.materials[i]);
    const surface_words floor = floor_words(j, tables);
    surface_row r;
    sample_row s;
    for (u32 l = 0; l < row; ++l) r.place[l] = 0, r.id[l] = 0, s.px[l] = s.py[l] = 0.0F, s.key[l] = empty_key;
    for (u32 y = y0; y < y1; ++y) {
        for (u32 x = x0; x < x1; x += sampled_pixels) {
            const u32 columns = min_(x1 - x, sampled_pixels);
            for (u32 pixel = 0; pixel < columns; ++pixel) keys_of(s.key + 4 * pixel, x + pixel, y);
            row_shown(s, j, x, y);
            row_surfaces(r, s, j, x, y, columns);
            for (u32 l = 0; l < row; ++l) {
                const bool on_floor = r.on_floor[l] != 0;
                r.albedo[l] = on_floor ? floor.albedo : 0U;
                r.normal[l] = on_floor ? floor.normal : 0U;
                r.material[l] = on_floor ? floor.material : 0U;
                r.emission[l] = 0;
            }
            r.count = 0;
            for (u32 l = 0; l < row; ++l) {
                r.place[r.count] = l, r.id[r.count] = static_cast<u32>(s.key[l]);
                r.px[r.count] = s.px[l], r.py[r.count] = s.py[l];
                r.count += r.on_mesh[l];
                if (r.count == row) break;
            }
            if (r.count > 0 && j.mesh.materials != nullptr) {
                row_materials(r, j, tables);
            } else if (r.count > 0) {
                row_mesh(r, j, tables, plain);
            }
            for (u32 pixel = 0; pixel < columns; ++pixel) {
                const u32 l = 4 * pixel;
                const u64 at = static_cast<u64>(y) * j.width + x + pixel;
                if ((s.first[l + 1] | s.first[l + 2] | s.first[l + 3]) == 0) {
                    store_surface(j.out, at, record_of(r, l), s.shown[l]);
                    j.out.coverage[at] = 0;
                    continue;
                }
                surface_record surfaces[4];
                u32 first[4];
                for (u32 k = 0; k < 4; ++k) surfaces[k] = record_of(r, l + k), first[k] = s.first[l + k];
                store_samples(j.out, at, surfaces, first, s.shown[l]);
            }
        }
    }
}
