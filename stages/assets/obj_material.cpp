// The material libraries of OBJ files.
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "core/io.hpp"
#include "kernels/body/srgb.hpp"
#include "stages/assets/obj_parts.hpp"

namespace carousel::stages {
namespace {

f32 linear_of(f32 srgb) {
    if (!(srgb > 0)) return 0;  // also NaN
    return static_cast<f32>(kernels::body::srgb_to_linear(std::min<f64>(srgb, 1.0)));
}

f32 within_unit(f32 x) { return x > 0 ? std::min(x, 1.0F) : 0.0F; }

/// Adds a texture; an empty name adds none. The options -s and -o scale and move coordinates whose v points
/// up; those of the asset have v = 1 - that v.
texture_slot add_texture(scene_asset& asset, const std::string& name,
                         const tinyobj::texture_option_t& options, const std::filesystem::path& folder) {
    texture_slot out;
    if (name.empty()) return out;
    std::string portable = name;
    std::replace(portable.begin(), portable.end(), '\\', '/');
    out.texture = static_cast<u32>(asset.textures.size());
    asset_texture made;
    made.image = static_cast<u32>(asset.images.size());
    if (options.clamp) made.wrap_u = made.wrap_v = texture_wrap::clamp;
    asset.images.push_back({folder / portable, {}, {}});
    asset.textures.push_back(made);
    const f64 s = options.scale[1], o = options.origin_offset[1];
    const f64 m[6] = {options.scale[0], 0, options.origin_offset[0], 0, s, 1 - s - o};
    if (std::all_of(std::begin(m), std::end(m), [](f64 x) { return std::abs(x) < 1e6; }))
        std::copy_n(m, 6, out.transform.m);
    return out;
}

}  // namespace

bool obj_material_reader::operator()(const std::string& name, std::vector<tinyobj::material_t>* materials,
                                     std::map<std::string, int>* numbers, std::string* warning,
                                     std::string* problem) {
    const std::optional<std::string> text = read_file((folder_ / name).string());
    if (!text) {
        *warning += fmt::format("can't read the material library {}: its colours are not shown\n",
                                (folder_ / name).string());
        return false;
    }
    std::istringstream lines(*text);
    std::string with_colours;
    for (std::string line; std::getline(lines, line);) {
        with_colours += line + "\n";
        const auto first = line.find_first_not_of(" \t");
        if (first != std::string::npos && line.compare(first, 6, "newmtl") == 0) with_colours += "Kd 1 1 1\n";
    }
    std::istringstream stream(with_colours);
    tinyobj::LoadMtl(numbers, materials, &stream, warning, problem);
    return true;
}

u32 add_material(scene_asset& asset, const tinyobj::material_t& m, const std::filesystem::path& folder) {
    asset_material out;
    const auto texture = [&](const std::string& name, const tinyobj::texture_option_t& options) {
        return add_texture(asset, name, options, folder);
    };
    out.name = m.name;
    out.base_color_texture = texture(m.diffuse_texname, m.diffuse_texopt);
    const bool black =
        std::all_of(std::begin(m.diffuse), std::end(m.diffuse), [](f32 c) { return !(c > 0); });
    for (std::size_t k = 0; k < 3; ++k) {
        if (!black || !out.base_color_texture.present()) out.base_color[k] = linear_of(m.diffuse[k]);
        out.emissive[k] = linear_of(m.emission[k]);
        out.specular[k] = within_unit(m.specular[k]);
    }
    out.base_color[3] = within_unit(m.dissolve);
    out.opacity_texture = texture(m.alpha_texname, m.alpha_texopt);
    if (m.dissolve < 1 || out.opacity_texture.present()) out.alpha = alpha_mode::blend;
    out.metallic_texture = texture(m.metallic_texname, m.metallic_texopt);
    out.roughness_texture = texture(m.roughness_texname, m.roughness_texopt);
    const bool physical = m.metallic > 0 || m.roughness > 0 || out.metallic_texture.present() ||
                          out.roughness_texture.present();
    // A texture multiplies its factor, and exporters omit the factor.
    out.metallic = out.metallic_texture.present() && !(m.metallic > 0) ? 1 : within_unit(m.metallic);
    out.roughness = out.roughness_texture.present() && !(m.roughness > 0) ? 1 : within_unit(m.roughness);
    // The Blinn-Phong exponent n of a lobe as wide as that of a roughness r with alpha = r * r: n = 2 /
    // alpha^2 - 2.
    const f64 exponent = m.shininess > 0 ? std::min<f64>(m.shininess, 1e6) : 0;
    if (!physical) out.roughness = static_cast<f32>(std::sqrt(std::sqrt(2 / (exponent + 2))));
    if (!physical &&
        std::all_of(std::begin(out.specular), std::end(out.specular), [](f32 c) { return c == 0; }))
        out.roughness = 1;
    out.emissive_texture = texture(m.emissive_texname, m.emissive_texopt);
    if (out.emissive_texture.present() && out.emissive[0] == 0 && out.emissive[1] == 0 &&
        out.emissive[2] == 0)
        std::fill(std::begin(out.emissive), std::end(out.emissive), 1.0F);
    out.normal_texture = texture(m.normal_texname, m.normal_texopt);
    out.height_texture = texture(m.bump_texname, m.bump_texopt);
    out.clearcoat = within_unit(m.clearcoat_thickness);
    out.clearcoat_roughness = within_unit(m.clearcoat_roughness);
    out.has_specular_texture = !m.specular_texname.empty() || !m.reflection_texname.empty();
    asset.materials.push_back(std::move(out));
    return static_cast<u32>(asset.materials.size() - 1);
}

}  // namespace carousel::stages
