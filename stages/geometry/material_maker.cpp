#include "stages/geometry/material_maker.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/log.hpp"

namespace carousel::stages {
namespace {

constexpr std::size_t most_sets = 2;  // pairs of texture coordinates of a vertex

/// The sets of texture coordinates that the maps use, other than the base colour's texture.
std::vector<u32> sets_of(const asset_material& m) {
    std::vector<u32> out;
    for (const texture_slot* slot :
         {&m.emissive_texture, &m.roughness_texture, &m.metallic_texture, &m.normal_texture,
          &m.occlusion_texture, &m.opacity_texture, &m.clearcoat_texture})
        if (slot->present() && std::find(out.begin(), out.end(), slot->set) == out.end())
            out.push_back(slot->set);
    return out;
}

u32 border_of(texture_wrap wrap) {
    switch (wrap) {
        case texture_wrap::clamp:
            return kernels::map_clamp;
        case texture_wrap::mirror:
            return kernels::map_mirror;
        default:
            return kernels::map_repeat;
    }
}

u32 mode_of(const asset_texture& t) {
    return border_of(t.wrap_u) | border_of(t.wrap_v) << 2 | (t.nearest ? kernels::map_nearest : 0U);
}

}  // namespace

alpha_mode shown_alpha(const asset_material& m) {
    return m.transmission > 0 && m.alpha == alpha_mode::opaque ? alpha_mode::blend : m.alpha;
}

kernels::map_slot material_maker::slot_of(const texture_slot& from, const std::vector<u32>& sets,
                                          bool is_color, u32 missing) {
    kernels::map_slot out;
    if (!from.present()) return out;
    const asset_texture& texture = asset_.textures[from.texture];
    const auto set = static_cast<std::size_t>(std::find(sets.begin(), sets.end(), from.set) - sets.begin());
    if (texture.image == no_index || set >= most_sets) return out;
    const auto [known, is_new] =
        known_.try_emplace({texture.image, is_color}, static_cast<u32>(maps_.size()));
    if (is_new) {
        surface made;
        made.image = asset_.images[texture.image];
        made.linear = !is_color;
        made.missing = missing;
        maps_.push_back(std::move(made));
    }
    out.map = known->second;
    out.mode = mode_of(texture) | u32{from.channel} << kernels::map_channel_shift |
               (set == 1 ? kernels::map_second_set : 0U);
    for (std::size_t k = 0; k < 6; ++k) out.transform[k] = static_cast<f32>(from.transform.m[k]);
    return out;
}

kernels::material_record material_maker::record_of(const asset_material& m) {
    const std::vector<u32> sets = sets_of(m);
    if (sets.size() > most_sets)
        log::warning(
            "{}: the textures of material \"{}\" use {} sets of texture coordinates; {} are possible, and "
            "textures with further ones are not shown",
            asset_.name, m.name, sets.size(), most_sets);
    kernels::material_record out;
    out.opacity = m.base_color[3];
    if (m.transmission > 0 && m.alpha != alpha_mode::mask) {
        // Plain alpha: some of the surface stays visible, as its reflections would.
        out.opacity *= 1.0F - 0.85F * m.transmission;
    }
    out.cutoff = m.alpha_cutoff;
    out.roughness = m.roughness;
    out.metallic = m.metallic;
    out.clearcoat = m.clearcoat;
    out.normal_scale = m.normal_scale;
    out.occlusion_strength = m.occlusion_strength;
    const alpha_mode alpha = shown_alpha(m);
    out.flags = (m.unlit ? u32{kernels::material_unlit} : 0U) |
                (alpha == alpha_mode::mask ? u32{kernels::material_masked} : 0U) |
                (alpha == alpha_mode::blend ? u32{kernels::material_blended} : 0U);
    for (std::size_t k = 0; k < 3; ++k)
        out.emission[k] = std::min(m.emissive[k] * m.emissive_strength, 65408.0F);
    if (m.base_color_texture.present())
        out.base_color.mode = mode_of(asset_.textures[m.base_color_texture.texture]);
    out.emission_map = slot_of(m.emissive_texture, sets, true);
    out.roughness_map = slot_of(m.roughness_texture, sets, false);
    out.metallic_map = slot_of(m.metallic_texture, sets, false);
    out.normal_map = slot_of(m.normal_texture, sets, false, 0xffff8080U);
    out.occlusion_map = slot_of(m.occlusion_texture, sets, false);
    out.opacity_map = slot_of(m.opacity_texture, sets, false);
    out.clearcoat_map = slot_of(m.clearcoat_texture, sets, false);
    return out;
}

kernels::vertex_detail material_maker::detail_of(const asset_material& m, const asset_primitive& p,
                                                 std::size_t i) const {
    kernels::vertex_detail out{};
    if (!p.tangents.empty()) std::copy_n(&p.tangents[4 * i], 4, out.tangent);
    // A tangent must be distinguishable from one that is computed.
    if (out.tangent[3] != 0) out.tangent[3] = out.tangent[3] < 0 ? -1.0F : 1.0F;
    const std::vector<u32> sets = sets_of(m);
    for (std::size_t k = 0; k < std::min(sets.size(), most_sets); ++k)
        if (sets[k] < p.coordinates.size() && !p.coordinates[sets[k]].empty())
            std::copy_n(&p.coordinates[sets[k]][2 * i], 2, out.texture[k]);
    for (std::size_t k = 0; k < 4; ++k) {
        const f32 color = p.colors.empty() ? 1.0F : std::clamp(p.colors[4 * i + k], 0.0F, 1.0F);
        out.color[k] = static_cast<u16>(std::lround(color * 65535.0F));
    }
    return out;
}

void turn_tangent(kernels::vertex_detail& d) {
    if (d.tangent[3] == 0) {
        d.tangent[3] = 2;
        return;
    }
    for (f32& t : d.tangent) t = -t;
}

kernels::vertex_detail placed(kernels::vertex_detail d, const affine& at, bool mirrored) {
    if (d.tangent[3] == 0 || d.tangent[3] == 2) return d;
    f64 out[3], square = 0;
    for (std::size_t row = 0; row < 3; ++row) {
        out[row] = at.m[4 * row] * d.tangent[0] + at.m[4 * row + 1] * d.tangent[1] +
                   at.m[4 * row + 2] * d.tangent[2];
        square += out[row] * out[row];
    }
    const f64 length = std::sqrt(square);
    for (std::size_t row = 0; row < 3; ++row)
        d.tangent[row] = length > 0 && std::isfinite(length) ? static_cast<f32>(out[row] / length) : 0.0F;
    if (mirrored) d.tangent[3] = -d.tangent[3];
    return d;
}

}  // namespace carousel::stages
