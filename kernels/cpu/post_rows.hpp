// No include guard on purpose: part of cpu/looks_source.hpp. Bloom, tone mapping and FXAA. A pixel of linear
// light, which is four floats, is one vector; the codes of tone mapping and FXAA are computed as in
// cpu/light_rows.hpp. Pixels whose neighbours lie beyond the border are computed one by one.

using floats4 = f32 __attribute__((vector_size(16)));
/// The colour of one pixel, with the arithmetic of vec3.
struct four {
    floats4 v;
};
CAROUSEL_FORCE floats4 same4(f32 x) { return floats4{x, x, x, x}; }
CAROUSEL_FORCE four along(four a, four b, f32 s) {
#if defined(__FMA__)
    return {_mm_fmadd_ps(b.v, same4(s), a.v)};
#else
    for (u32 i = 0; i < 4; ++i) a.v[i] = fma_(b.v[i], s, a.v[i]);
    return a;
#endif
}
CAROUSEL_FORCE four mix(four a, four b, f32 t) { return along(a, four{b.v - a.v}, t); }
CAROUSEL_FORCE four at_most(four c, f32 most) {
    const floats4 limit = same4(most);
    return {c.v < limit ? c.v : limit};
}
CAROUSEL_FORCE four load(const f32* from) {
    four c;
    __builtin_memcpy(&c.v, from, sizeof c.v);
    return c;
}
CAROUSEL_FORCE void store(f32* to, four c) { __builtin_memcpy(to, &c.v, sizeof c.v); }

CAROUSEL_FORCE f32* line_of(const linear_picture& p, i32 y) {
    const i32 bounded = min_(max_(y, 0), static_cast<i32>(p.height) - 1);
    return p.data + 4 * static_cast<u64>(static_cast<u32>(bounded)) * p.width;
}

void bloom_down_rows(const bloom_down_pass& p, u32 begin, u32 end) {
    // the last column with all neighbours: 2 x + 2 < from.width
    const u32 inner = min_(p.to.width, p.from.width >= 4 ? (p.from.width - 3) / 2 + 1 : 1U);
    for (u32 y = begin; y < end; ++y) {
        const f32* lines[4];
        for (u32 k = 0; k < 4; ++k) lines[k] = line_of(p.from, static_cast<i32>(2 * y + k) - 1);
        f32* const to = line_of(p.to, static_cast<i32>(y));
        bloom_down_pixel(p, 0, y);
        for (u32 x = 1; x < inner; ++x) {
            const auto at = [&](u32 column, u32 line) __attribute__((always_inline)) {
                return load(lines[line] + 4 * (2 * x - 1 + column));
            };
            four sum = tent<four>(at, p.most);
            sum.v[3] = 1.0F;
            store(to + 4 * x, sum);
        }
        for (u32 x = max_(inner, 1U); x < p.to.width; ++x) bloom_down_pixel(p, x, y);
    }
}

/// The rows of the smaller picture from which row y of the enlarged one is computed.
struct enlarged_lines {
    const f32* at;
    const f32* next;
    u32 begin, end;  ///< columns of the enlarged picture whose neighbours lie in the smaller one
};
CAROUSEL_FORCE enlarged_lines lines_of(const linear_picture& half, u32 y, u32 width) {
    return {line_of(half, static_cast<i32>(y >> 1)), line_of(half, next_of(y)), min_(2U, width),
            max_(min_(2U, width), min_(width, half.width >= 2 ? 2 * half.width - 2 : 0U))};
}
CAROUSEL_FORCE four enlarged_at(const enlarged_lines& l, u32 x) {
    const u32 c = 4 * (x >> 1), n = 4 * static_cast<u32>(next_of(x));
    return between_pixels(load(l.at + c), load(l.at + n), load(l.next + c), load(l.next + n));
}

void bloom_up_rows(const bloom_up_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y) {
        const enlarged_lines lines = lines_of(p.wide, y, p.to.width);
        f32* const to = line_of(p.to, static_cast<i32>(y));
        for (u32 x = 0; x < lines.begin; ++x) bloom_up_pixel(p, x, y);
        for (u32 x = lines.begin; x < lines.end; ++x)
            store(to + 4 * x, mix(load(to + 4 * x), enlarged_at(lines, x), p.part));
        for (u32 x = lines.end; x < p.to.width; ++x) bloom_up_pixel(p, x, y);
    }
}

/// Sets mixed[]: the light of `row` pixels with the bloom.
CAROUSEL_FORCE void row_bloom(f32 (&mixed)[row * 4], const tone_pass& p, u32 x0, u32 y, u32 columns) {
    const f32* const from = line_of(p.from, static_cast<i32>(y)) + 4 * x0;
    if (!(p.part > 0.0F)) {
        for (u32 l = 0; l < columns; ++l) store(mixed + 4 * l, load(from + 4 * l));
        return;
    }
    const enlarged_lines lines = lines_of(p.bloom, y, p.from.width);
    for (u32 l = 0; l < columns; ++l) {
        const u32 x = x0 + l;
        if (x >= lines.begin && x < lines.end) {
            store(mixed + 4 * l, mix(load(from + 4 * l), enlarged_at(lines, x), p.part));
        } else {
            const vec3 c =
                mix(vec3{from[4 * l], from[4 * l + 1], from[4 * l + 2]}, enlarged(p.bloom, x, y), p.part);
            mixed[4 * l] = c.x, mixed[4 * l + 1] = c.y, mixed[4 * l + 2] = c.z;
        }
    }
}

template <tone_map how>
CAROUSEL_FORCE void tone_rows_by(const tone_pass& p, u32 begin, u32 end) {
    alignas(64) f32 mixed[row * 4];
    alignas(64) u32 code[3][row], out[row];
    for (f32& each : mixed) each = 0.0F;
    const f32 exposure = exposure_of(p);
    for (u32 y = begin; y < end; ++y) {
        for (u32 x0 = 0; x0 < p.from.width; x0 += row) {
            const u32 columns = min_(p.from.width - x0, row);
            row_bloom(mixed, p, x0, y, columns);
            for (u32 l = 0; l < row; ++l) {
                const vec3 c =
                    tone_mapped(vec3{mixed[4 * l], mixed[4 * l + 1], mixed[4 * l + 2]} * exposure, how);
                code[0][l] = code_index(c.x), code[1][l] = code_index(c.y), code[2][l] = code_index(c.z);
            }
            for (u32 k = 0; k < 3; ++k) {
                for (u32 l = 0; l < row; ++l) {
                    code[k][l] = p.tables->encode[code[k][l]];
                    __asm__ volatile("");
                }
            }
            for (u32 l = 0; l < row; ++l)
                out[l] = code[0][l] | code[1][l] << 8 | code[2][l] << 16 | 0xff000000U;
            put_row(p.to + static_cast<u64>(y) * p.from.width + x0, out, columns);
        }
    }
}
void meter_rows(const meter_pass& p, u32 begin, u32 end) {
    for (u32 y = begin; y < end; ++y) {
        i32 sum = 0;
        for (u32 x = 0; x < p.width; ++x) sum += meter_pixel(p, x, y);
        p.rows[y] = sum;
    }
}
void tone_rows(const tone_pass& p, u32 begin, u32 end) {
    if (p.map == tone_map::neutral) {
        tone_rows_by<tone_map::neutral>(p, begin, end);
    } else if (p.map == tone_map::aces) {
        tone_rows_by<tone_map::aces>(p, begin, end);
    } else {
        tone_rows_by<tone_map::linear>(p, begin, end);
    }
}

/// The luma of `row` pixels of a line from column x0 - 1 on, and of two more.
CAROUSEL_FORCE void take_luma(i32 (&to)[row + 16], const u32* line, u32 x0, u32 width) {
    alignas(64) u32 colors[row + 16];
    if (x0 >= 1 && x0 + row < width) {
        __builtin_memcpy(colors, line + x0 - 1, (row + 2) * sizeof(u32));
    } else {
        for (u32 l = 0; l < row + 2; ++l)
            colors[l] = line[min_(static_cast<u32>(max_(static_cast<i32>(x0 + l) - 1, 0)), width - 1)];
    }
    for (u32 l = row + 2; l < row + 16; ++l) colors[l] = 0;
    for (u32 l = 0; l < row + 16; ++l) to[l] = luma_of(colors[l]);
}

/// Pixels of one line that lie at edges, to be computed together.
struct alignas(64) edge_pixels {
    i32 x[row], luma[5][row];
    u32 count = 0;
};
CAROUSEL_FORCE corner_luma luma_at(const edge_pixels& e, u32 l) {
    return {e.luma[0][l], e.luma[1][l], e.luma[2][l], e.luma[3][l], e.luma[4][l]};
}
void smooth_edges(edge_pixels& e, const smooth_pass& p, u32 y) {
    alignas(64) f32 step_x[row], step_y[row];
    alignas(64) u32 corner[4][row], fx[row], fy[row], tap[4][row], out[row];
    const u32 count = e.count, padded = (count + 15) / 16 * 16;
    for (u32 l = count; l < padded; ++l) {
        e.x[l] = e.x[0];
        for (u32 k = 0; k < 5; ++k) e.luma[k][l] = e.luma[k][0];
    }
    for (u32 l = 0; l < padded; ++l) {
        const edge_step s = edge_step_of(luma_at(e, l));
        step_x[l] = s.x, step_y[l] = s.y;
    }
    for (u32 k = 0; k < 4; ++k) {
        for (u32 l = 0; l < padded; ++l) {
            const color_place t = edge_tap(p, e.x[l], static_cast<i32>(y), {step_x[l], step_y[l]}, k);
            corner[0][l] = t.a, corner[1][l] = t.b, corner[2][l] = t.c, corner[3][l] = t.d;
            fx[l] = t.fx, fy[l] = t.fy;
        }
        for (u32 l = 0; l < padded; ++l) {
            for (u32 i = 0; i < 4; ++i) corner[i][l] = p.from[corner[i][l]];
            __asm__ volatile("");
        }
        for (u32 l = 0; l < padded; ++l)
            tap[k][l] = color_between(corner[0][l], corner[1][l], corner[2][l], corner[3][l], fx[l], fy[l]);
    }
    for (u32 l = 0; l < padded; ++l)
        out[l] = edge_color(luma_at(e, l), tap[0][l], tap[1][l], tap[2][l], tap[3][l]) | 0xff000000U;
    u32* const to = p.to + static_cast<u64>(y) * p.width;
    for (u32 l = 0; l < count; ++l) to[e.x[l]] = out[l];
    e.count = 0;
}

void smooth_rows(const smooth_pass& p, u32 begin, u32 end) {
    alignas(64) i32 above[row + 16], here[row + 16], below[row + 16];
    alignas(64) u32 edge[row], out[row];
    edge_pixels edges;
    for (u32 y = begin; y < end; ++y) {
        const u32* const line = p.from + static_cast<u64>(y) * p.width;
        const u32* const up = y > 0 ? line - p.width : line;
        const u32* const down = y + 1 < p.height ? line + p.width : line;
        for (u32 x0 = 0; x0 < p.width; x0 += row) {
            const u32 columns = min_(p.width - x0, row);
            take_luma(above, up, x0, p.width), take_luma(here, line, x0, p.width),
                take_luma(below, down, x0, p.width);
            const auto luma = [&](u32 l) __attribute__((always_inline)) {
                return corner_luma{here[l + 1], above[l], above[l + 2], below[l], below[l + 2]};
            };
            u32 any = 0;
            for (u32 l = 0; l < row; ++l) {
                edge[l] = u32{is_edge(luma(l))};
                any |= edge[l];
            }
            take_row(out, line + x0, columns);
            for (u32 l = 0; l < row; ++l) out[l] |= 0xff000000U;
            put_row(p.to + static_cast<u64>(y) * p.width + x0, out, columns);
            for (u32 l = 0; any != 0 && l < columns; ++l) {
                const u32 at = edges.count;
                const corner_luma c = luma(l);
                edges.x[at] = static_cast<i32>(x0 + l);
                edges.luma[0][at] = c.m, edges.luma[1][at] = c.nw, edges.luma[2][at] = c.ne,
                edges.luma[3][at] = c.sw, edges.luma[4][at] = c.se;
                edges.count = at + edge[l];
                if (edges.count == row) smooth_edges(edges, p, y);
            }
        }
        if (edges.count != 0) smooth_edges(edges, p, y);
    }
}
