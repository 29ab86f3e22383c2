// No include guard on purpose: part of cpu/looks_source.hpp. Ambient occlusion and light, `row` pixels at a
// time. Each step is a loop over these pixels without branches, which the compiler vectorises; reads from
// tables and maps are loops of their own, one pixel after another. Where a step does not apply to a pixel,
// its result is computed and dropped.

#if defined(__AVX2__)
/// Eight floats: a colour of two levels of the sky. mix() is that of vec3.
struct eight {
    __m256 v;
};
CAROUSEL_FORCE eight mix(eight a, eight b, f32 t) {
    return {_mm256_fmadd_ps(_mm256_sub_ps(b.v, a.v), _mm256_set1_ps(t), a.v)};
}
#endif

struct alignas(64) lit_row {
    f32 depth[row];
    f32 ray[3][row], d[3][row], n[3][row], mirrored[3][row];
    u32 albedo[3][row];                                         ///< bits of floats
    u32 material[row], normal[row], color[row], emission[row];  ///< as in the planes
    f32 n_v[row], roughness[row], clearcoat[row];
    f32 shadow_x[row], shadow_y[row], receiver[row];
    i32 texel_x[row], texel_y[row];
    u32 in_shadow_map[row], middle[row], ends[row];
    f32 sun[row], open[row];
    u32 sky_texel[row], sky_fine[row], sum_first[row];
    f32 sky_x[row], sky_y[row], sky_coarse[row], sum_x[row], sum_y[row];
    u32 sum_pairs[2][row * 4];  ///< bits of floats
    f32 mirror[row][4], coat[row][4];
    f32 sky[3][row], out[3][row];
    u32 coats;  ///< number of pixels with a clearcoat
};

CAROUSEL_FORCE vec3 at(const f32 (&v)[3][row], u32 l) { return {v[0][l], v[1][l], v[2][l]}; }
CAROUSEL_FORCE void put(f32 (&v)[3][row], u32 l, vec3 value) {
    v[0][l] = value.x, v[1][l] = value.y, v[2][l] = value.z;
}

void occlusion_rows(const light_pass& p, u32 begin, u32 end) {
    alignas(64) f32 depth[row], here[3][row], n[3][row], radius[row], sum[row], other[row];
    alignas(64) f32 taps[2][occlusion_taps][16];
    alignas(64) u32 normal[row], open[row];
    alignas(64) i32 tap_x[row], tap_y[row];
    alignas(64) u32 place[row];
    const u32 width = p.a.width;
    for (u32 y = begin; y < end; ++y) {
        const f32 fy = static_cast<f32>(y);
        for (u32 k = 0; k < occlusion_taps; ++k)
            for (u32 l = 0; l < 16; ++l)
                for (u32 i = 0; i < 2; ++i) taps[i][k][l] = p.taps[(l & 3U) | (y & 3U) << 2][k][i];
        for (u32 x0 = 0; x0 < width; x0 += row) {
            const u32 columns = min_(width - x0, row);
            const u64 first = static_cast<u64>(y) * width + x0;
            take_row(depth, p.a.in.depth + first, columns);
            u32 surfaces = 0;
            for (u32 l = 0; l < row; ++l) surfaces += u32{depth[l] > 0.0F};
            if (surfaces == 0) {
                __builtin_memset(p.a.scratch + first, 255, columns);
                continue;
            }
            take_row(normal, p.a.in.normal + first, columns);
            for (u32 l = 0; l < row; ++l) {
                const occluded_point o =
                    occluded_at(p, static_cast<f32>(static_cast<i32>(x0 + l)), fy, normal[l], depth[l]);
                put(here, l, o.at), put(n, l, o.n);
                radius[l] = o.radius, sum[l] = 0.0F;
            }
            for (u32 k = 0; k < occlusion_taps; ++k) {
                for (u32 group = 0; group < row; group += 16) {
                    for (u32 l = group; l < group + 16; ++l) {
                        const tap_pixel tap = tap_of(p, static_cast<f32>(static_cast<i32>(x0 + l)), fy,
                                                     radius[l], taps[0][k][l - group], taps[1][k][l - group]);
                        tap_x[l] = tap.x, tap_y[l] = tap.y;
                        place[l] = static_cast<u32>(tap.y) * width + static_cast<u32>(tap.x);
                    }
                }
                for (u32 l = 0; l < row; ++l) {
                    other[l] = p.a.in.depth[place[l]];
                    __asm__ volatile("");
                }
                for (u32 l = 0; l < row; ++l)
                    sum[l] = add_tap(p, {at(here, l), at(n, l), radius[l]}, {tap_x[l], tap_y[l]}, other[l],
                                     sum[l]);
            }
            for (u32 l = 0; l < row; ++l) open[l] = depth[l] > 0.0F ? openness(p, sum[l]) : 255U;
            for (u32 l = 0; l < columns; ++l) p.a.scratch[first + l] = static_cast<u8>(open[l]);
        }
    }
}

CAROUSEL_FORCE void row_rays(lit_row& r, const light_pass& p, u32 x0, u32 y) {
    const f32 fy = static_cast<f32>(y);
    for (u32 l = 0; l < row; ++l) {
        const vec3 ray = ray_of_pixel(p, static_cast<f32>(static_cast<i32>(x0 + l)), fy);
        put(r.ray, l, ray), put(r.d, l, unit(ray));
    }
}

/// Sets open[]: mean_openness() of each pixel. A row of neighbours that reaches beyond the picture is copied
/// with a depth that never counts.
CAROUSEL_FORCE void row_openness(lit_row& r, const light_pass& p, u32 x0, u32 y) {
    alignas(64) f32 depth[row + 16];
    alignas(64) u8 open[row + 16];
    alignas(64) u32 sum[row], count[row];
    for (u32 l = 0; l < row; ++l) sum[l] = 0, count[l] = 0;
    for (u32 j = 0; j < 4; ++j) {
        const u32 ny = y + j - 2U;  // wraps to a large number above the picture
        if (ny >= p.a.height) continue;
        const u64 line = static_cast<u64>(ny) * p.a.width;
        if (x0 >= 2 && x0 + row + 1 <= p.a.width) {
            __builtin_memcpy(depth, p.a.in.depth + line + x0 - 2, (row + 3) * sizeof(f32));
            __builtin_memcpy(open, p.a.scratch + line + x0 - 2, row + 3);
        } else {
            for (u32 l = 0; l < row + 3; ++l) {
                const u32 nx = x0 + l - 2U;
                const bool within = nx < p.a.width;
                depth[l] = within ? p.a.in.depth[line + nx] : float_of(0x7f800000U);
                open[l] = within ? p.a.scratch[line + nx] : u8{0};
            }
        }
        for (u32 k = 0; k < 4; ++k) {
            for (u32 l = 0; l < row; ++l) {
                const u32 same = u32{same_surface(depth[l + k], r.depth[l])};
                sum[l] += same * open[l + k], count[l] += same;
            }
        }
    }
    for (u32 l = 0; l < row; ++l) r.open[l] = mean_of(sum[l], count[l]);
}

/// The texels of the shadow map that are lit, by one comparison per row of texels.
CAROUSEL_FORCE lit_texels lit_texels_of(const light_pass& p, const shadow_place& s) {
#if defined(__AVX2__)
    // Two texels more than needed are read per row; they follow in memory, because the place is not at the
    // map's border.
    const f32* from =
        p.a.shadow + static_cast<u64>(static_cast<u32>(s.y)) * p.a.shadow_side + static_cast<u32>(s.x);
    const __m256 receiver = _mm256_set1_ps(s.receiver);
    u32 rows[6];
    for (u32 y = 0; y < 6; ++y, from += p.a.shadow_side)
        rows[y] =
            static_cast<u32>(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(from), receiver, _CMP_LE_OQ))) &
            63U;
    return {rows[1] | rows[2] << 6 | rows[3] << 12 | rows[4] << 18, rows[0] | rows[5] << 6};
#else
    return lit_texels_at(p, s);
#endif
}

CAROUSEL_FORCE void row_sun(lit_row& r, const light_pass& p) {
    for (u32 l = 0; l < row; ++l) {
        const vec3 n = at(r.n, l);
        const shadow_place s = shadow_place_of(p, along(p.rays.eye, at(r.ray, l), 1.0F / r.depth[l]), n);
        r.texel_x[l] = s.x, r.texel_y[l] = s.y;
        r.shadow_x[l] = s.fx, r.shadow_y[l] = s.fy, r.receiver[l] = s.receiver;
        r.in_shadow_map[l] = u32{s.inside} & u32{dot(n, p.light) > 0.0F} & u32{r.depth[l] > 0.0F};
    }
    for (u32 l = 0; l < row; ++l) {
        lit_texels lit = all_lit;
        if (r.in_shadow_map[l] != 0)
            lit = lit_texels_of(p, {r.texel_x[l], r.texel_y[l], 0.0F, 0.0F, r.receiver[l], true});
        r.middle[l] = lit.middle, r.ends[l] = lit.ends;
    }
    for (u32 l = 0; l < row; ++l) {
        const f32 part = lit_part({r.middle[l], r.ends[l]}, r.shadow_x[l], r.shadow_y[l]);
        r.sun[l] = p.a.sun * (r.in_shadow_map[l] != 0 ? part : 1.0F);
    }
}

/// reflected_sky() of one pixel.
CAROUSEL_FORCE void take_sky(f32 (&to)[4], const environment& e, const sky_place& place,
                             const sky_level& level) {
#if defined(__AVX2__)
    const f32* const fine = &e.sky[level.fine][0][0][0] + u64{place.texel} * 4;
    const f32* const coarse = fine + u64{sky_pitch} * sky_pitch * 4;
    const auto texel = [=](u32 i) __attribute__((always_inline)) {
        return eight{_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(fine + i)),
                                          _mm_loadu_ps(coarse + i), 1)};
    };
    const eight both =
        bilinear(texel(0), texel(4), texel(4 * sky_pitch), texel(4 * sky_pitch + 4), place.fx, place.fy);
    const __m128 a = _mm256_castps256_ps128(both.v), b = _mm256_extractf128_ps(both.v, 1);
    _mm_storeu_ps(to, _mm_fmadd_ps(_mm_sub_ps(b, a), _mm_set1_ps(level.coarse), a));
#else
    const vec3 c = reflected_sky(e, place, level);
    to[0] = c.x, to[1] = c.y, to[2] = c.z, to[3] = 0.0F;
#endif
}

/// Reads the tables of image-based light.
CAROUSEL_FORCE void row_sky(lit_row& r, const light_pass& p) {
    for (u32 l = 0; l < row; ++l) {
        const sky_place place = sky_place_of(at(r.mirrored, l));
        r.sky_texel[l] = place.texel, r.sky_x[l] = place.fx, r.sky_y[l] = place.fy;
        const sky_level level = sky_level_of(r.roughness[l]);
        r.sky_fine[l] = level.fine, r.sky_coarse[l] = level.coarse;
        const split_sum_place sum = split_sum_place_of(r.n_v[l], r.roughness[l]);
        r.sum_first[l] = sum.first, r.sum_x[l] = sum.fx, r.sum_y[l] = sum.fy;
    }
    const f32* const sums = &p.a.sky->split_sum[0][0][0];
    for (u32 l = 0; l < row; ++l) {
        take4(r.sum_pairs[0] + 4 * l, sums + u64{r.sum_first[l]} * 2);
        take4(r.sum_pairs[1] + 4 * l, sums + u64{r.sum_first[l]} * 2 + split_sum_side * 2);
        take_sky(r.mirror[l], *p.a.sky, {r.sky_texel[l], r.sky_x[l], r.sky_y[l]},
                 {r.sky_fine[l], r.sky_coarse[l]});
    }
    if (r.coats == 0) return;
    for (u32 l = 0; l < row; ++l) {
        if (r.clearcoat[l] > 0.0F)
            take_sky(r.coat[l], *p.a.sky, {r.sky_texel[l], r.sky_x[l], r.sky_y[l]},
                     sky_level_of(coat_roughness));
    }
}

/// The pixel's surface, from the words that row_surface() has read.
CAROUSEL_FORCE seen_surface surface_at(const light_pass& p, const lit_row& r, u32 l) {
    return seen_surface_of(p, {float_of(r.albedo[0][l]), float_of(r.albedo[1][l]), float_of(r.albedo[2][l])},
                           r.material[l], at(r.d, l), at(r.n, l));
}
CAROUSEL_FORCE void row_surface(lit_row& r, const light_pass& p, u64 first, u32 columns) {
    take_row(r.normal, p.a.in.normal + first, columns);
    for (u32 l = 0; l < row; ++l) put(r.n, l, unpack_normal(r.normal[l]));
    take_row(r.color, p.a.in.albedo + first, columns);
    for (u32 k = 0; k < 3; ++k) {
        for (u32 l = 0; l < row; ++l) {
            r.albedo[k][l] = bits_of(p.tables->decode[4 * (r.color[l] >> (8 * k) & 255U)]);
            __asm__ volatile("");
        }
    }
    take_row(r.material, p.a.in.material + first, columns);
    u32 coats = 0;
    for (u32 l = 0; l < row; ++l) {
        const seen_surface s = surface_at(p, r, l);
        put(r.mirrored, l, s.mirrored);
        r.n_v[l] = s.n_v, r.roughness[l] = s.m.roughness, r.clearcoat[l] = s.m.clearcoat;
        coats += u32{s.m.clearcoat > 0.0F};
    }
    r.coats = coats;
}

template <bool coated>
CAROUSEL_FORCE void row_light(lit_row& r, const light_pass& p) {
    const light_pass& pass = p;
    for (u32 l = 0; l < row; ++l) {
        const auto sum = [&](u32 i) __attribute__((always_inline)) {
            return float_of(r.sum_pairs[i >> 2][4 * l + (i & 3U)]);
        };
        const f32 fx = r.sum_x[l], fy = r.sum_y[l];
        const split_sum sums{bilinear(sum(0), sum(2), sum(4), sum(6), fx, fy),
                             bilinear(sum(1), sum(3), sum(5), sum(7), fx, fy)};
        const vec3 mirror{r.mirror[l][0], r.mirror[l][1], r.mirror[l][2]};
        const vec3 coat{r.coat[l][0], r.coat[l][1], r.coat[l][2]};
        put(r.out, l,
            surface_light(pass, surface_at(p, r, l), r.sun[l], material_openness(r.color[l]) * r.open[l],
                          sums, mirror, coat, coated));
    }
}

/// Not inline, because it is called in several places.
__attribute__((noinline)) vec3 light_of_surface(const light_pass& p, const seen_words& w, f32 depth, u32 x,
                                                u32 y) {
    return seen_light(p, *p.tables, w, depth, x, y);
}

/// Replaces the light of the first surface by that of all samples, in pixels with several surfaces.
void row_samples(lit_row& r, const light_pass& p, u32 x0, u32 y, u32 columns) {
    const u64 first = static_cast<u64>(y) * p.a.width + x0;
    for (u32 l = 0; l < columns; ++l) {
        const u32 coverage = p.a.in.coverage[first + l];
        if (coverage == 0) continue;
        const auto light_of = [&](const seen_words& w, f32 depth) {
            return light_of_surface(p, w, depth, x0 + l, y);
        };
        put(r.out, l, mean_light(p, first + l, coverage, at(r.out, l), light_of));
    }
}

void light_rows(const light_pass& p, u32 begin, u32 end) {
    if (has_extras(p)) {
        for (u32 y = begin; y < end; ++y)
            for (u32 x = 0; x < p.a.width; ++x) {
                const auto light_of = [&](const seen_words& w, f32 depth) {
                    return light_of_surface(p, w, depth, x, y);
                };
                const u64 at = static_cast<u64>(y) * p.a.width + x;
                if (p.a.in.coverage != nullptr) {
                    light_samples_pixel(p, at, light_of);
                } else {
                    store_color(p.a.radiance + 4 * at, first_light(p, at, light_of));
                }
            }
        return;
    }
    lit_row r;
    for (u32 l = 0; l < row; ++l) {
        r.sun[l] = p.a.sun, r.open[l] = 1.0F;
        for (u32 i = 0; i < 4; ++i) r.coat[l][i] = 0.0F;
    }
    const bool fog = p.a.fog > 0.0F;
    for (u32 y = begin; y < end; ++y) {
        for (u32 x0 = 0; x0 < p.a.width; x0 += row) {
            const u32 columns = min_(p.a.width - x0, row);
            const u64 first = static_cast<u64>(y) * p.a.width + x0;
            take_row(r.depth, p.a.in.depth + first, columns);
            u32 surfaces = 0;
            for (u32 l = 0; l < row; ++l) surfaces += u32{r.depth[l] > 0.0F};
            row_rays(r, p, x0, y);
            if (surfaces > 0) {
                row_surface(r, p, first, columns);
                if (p.a.shadow != nullptr) row_sun(r, p);
                if (p.a.occlusion_radius > 0.0F) row_openness(r, p, x0, y);
                row_sky(r, p);
                if (r.coats > 0) {
                    row_light<true>(r, p);
                } else {
                    row_light<false>(r, p);
                }
                if (p.a.in.emission != nullptr) {
                    take_row(r.emission, p.a.in.emission + first, columns);
                    for (u32 l = 0; l < row; ++l)
                        put(r.out, l, with_emission(at(r.out, l), r.emission[l], r.normal[l]));
                }
            }
            if (surfaces < columns || fog) {
                for (u32 l = 0; l < row; ++l) put(r.sky, l, visible_sky(p, at(r.d, l)));
                if (surfaces == 0) {
                    for (u32 l = 0; l < row; ++l) put(r.out, l, at(r.sky, l));
                } else if (fog) {
                    for (u32 l = 0; l < row; ++l)
                        put(r.out, l, with_fog(p, at(r.out, l), at(r.sky, l), at(r.ray, l), r.depth[l]));
                }
                for (u32 k = 0; k < 3; ++k)
                    for (u32 l = 0; l < row; ++l) r.out[k][l] = r.depth[l] > 0.0F ? r.out[k][l] : r.sky[k][l];
            }
            if (p.a.in.coverage != nullptr) row_samples(r, p, x0, y, columns);
            f32* const to = p.a.radiance + 4 * first;
            if (columns == row) {
                for (u32 l = 0; l < row; ++l)
                    to[4 * l] = r.out[0][l], to[4 * l + 1] = r.out[1][l], to[4 * l + 2] = r.out[2][l],
                           to[4 * l + 3] = 1.0F;
            } else {
                for (u32 l = 0; l < columns; ++l)
                    to[4 * l] = r.out[0][l], to[4 * l + 1] = r.out[1][l], to[4 * l + 2] = r.out[2][l],
                           to[4 * l + 3] = 1.0F;
            }
        }
    }
}
