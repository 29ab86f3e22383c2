// No include guard on purpose: part of cpu/simd_source.hpp. Computes a row's texture values if there are mip
// levels or several textures, with the steps of body/mip.hpp, vectorised. Runs after row_barycentrics, whose
// indices and weights it uses.

void row_mapped(shaded_row& r, const fragment_job& job, u32 x0, u32 y) {
    alignas(64) f32 slope_x[3][row], slope_y[3][row], us[row], vs[row];
    spread(r, of_position);  // the positions are loaded again, because the normals have overwritten them
    const f32 py = centre_y(job.shading, y), step_x = job.shading.scale_x, step_y = job.shading.scale_y;
    for (u32 l = 0; l < row; ++l) {
        const weight_slopes s = slopes_at(centre_x(job.shading, x0 + l), py, step_x, step_y,
                                          corner_at(r, 0, l), corner_at(r, 1, l), corner_at(r, 2, l));
        for (u32 k = 0; k < 3; ++k) slope_x[k][l] = s.x[k], slope_y[k][l] = s.y[k];
    }

    const texture_record* records[row];
    alignas(64) u32 width[row], height[row], levels[row], level[row], begin[row];
    const u32 textures = job.mesh.counts.texture_count;
    for (u32 l = 0; l < row; ++l) {
        records[l] = textures > 1 ? job.mesh.texture_records +
                                        min_(job.mesh.texture_numbers[r.index[4 * r.run[l]]], textures - 1U)
                                  : &job.shading.texture;
        width[l] = bounded_side(records[l]->width), height[l] = bounded_side(records[l]->height),
        levels[l] = bounded_levels(records[l]->levels);
    }

    spread(r, of_texture);
    for (u32 l = 0; l < row; ++l) {
        const barycentrics b{r.bary[0][l], r.bary[1][l], r.bary[2][l]};
        const weight_slopes s{{slope_x[0][l], slope_x[1][l], slope_x[2][l]},
                              {slope_y[0][l], slope_y[1][l], slope_y[2][l]}};
        const moving u = move(b, s, r.at[0][l], r.at[2][l], r.at[4][l]);
        const moving v = move(b, s, r.at[1][l], r.at[3][l], r.at[5][l]);
        level[l] = mip_level(u, v, width[l], height[l], levels[l]);
        us[l] = u.value, vs[l] = v.value;
    }

    const u32* const texels = reinterpret_cast<const u32*>(job.mesh.texture);
    const u32 last = job.shading.texel_count - 1U;
    for (u32 coarser = 0; coarser < 2; ++coarser) {
        for (u32 l = 0; l < row; ++l)
            begin[l] = records[l]->begin[min_((level[l] >> 8) + coarser, levels[l] - 1U)];
        for (u32 l = 0; l < row; ++l) {
            const u32 at = min_((level[l] >> 8) + coarser, levels[l] - 1U);
            const u32 columns = level_side(width[l], at);
            const texel_footprint f = footprint(us[l], vs[l], columns, level_side(height[l], at));
            r.texel[0][l] = min_(begin[l] + f.y0 * columns + f.x0, last),
            r.texel[1][l] = min_(begin[l] + f.y0 * columns + f.x1, last);
            r.texel[2][l] = min_(begin[l] + f.y1 * columns + f.x0, last),
            r.texel[3][l] = min_(begin[l] + f.y1 * columns + f.x1, last);
            r.fraction_x[l] = f.fraction_x, r.fraction_y[l] = f.fraction_y;
        }
        for (u32 k = 0; k < 4; ++k) take_words(r.texel[k], texels, r.texel[k]);
        if (coarser == 0) {
            filter_row(r, r.value);
            continue;
        }
        alignas(64) u32 coarse[3][row];
        filter_row(r, coarse);
        for (u32 k = 0; k < 3; ++k)
            for (u32 l = 0; l < row; ++l)
                r.value[k][l] = between(r.value[k][l], coarse[k][l], level[l] & 255U);
    }
}
