#include "stages/assets/asset_features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/log.hpp"

namespace carousel::stages {
namespace {

/// "1 skin is", "2 skins are".
std::string counted(u64 n, const char* one, const char* several) {
    return fmt::format("{} {}", n, n == 1 ? one : several);
}

/// What the shown meshes use: only this can be missing in a picture.
struct shown_parts {
    std::vector<const asset_primitive*> primitives;
    std::vector<const asset_material*> materials;
    u64 skins = 0, morphed = 0, colored = 0, cameras = 0, lights = 0;
};

shown_parts parts_of(const scene_asset& asset) {
    shown_parts out;
    std::set<u32> meshes, materials, skins;
    for (const u32 i : asset.preorder()) {
        const asset_node& node = asset.nodes[i];
        if (node.mesh != no_index) meshes.insert(node.mesh);
        if (node.skin != no_index) skins.insert(node.skin);
    }
    for (const u32 m : meshes) {
        bool morphed = false;
        for (const asset_primitive& p : asset.meshes[m].primitives) {
            out.primitives.push_back(&p);
            morphed = morphed || !p.targets.empty();
            out.colored += p.colors.empty() ? 0 : 1;
            if (p.material != no_index) materials.insert(p.material);
        }
        out.morphed += morphed ? 1 : 0;
    }
    for (const u32 m : materials) out.materials.push_back(&asset.materials[m]);
    out.skins = skins.size();
    return out;
}

/// True if the reflectance differs from that of plain glTF. A matt material without any, which an OBJ file
/// has by default, is shown as it is.
bool has_specular_factors(const asset_material& m) {
    const auto all = [&](f32 x) {
        return std::all_of(std::begin(m.specular), std::end(m.specular), [x](f32 s) { return s == x; });
    };
    const bool matt = m.roughness == 1 && m.metallic == 0;
    return !m.unlit && !all(1) && !(all(0) && matt);
}

bool emits(const asset_material& m) {
    return m.emissive_strength > 0 && (m.emissive[0] > 0 || m.emissive[1] > 0 || m.emissive[2] > 0);
}

class feature_list {
public:
    feature_list(const scene_asset& asset) : asset_(asset), parts_(parts_of(asset)) {}

    std::vector<feature_use> make() {
        of_materials();
        of_textures();
        const auto& omitted = asset_.omitted;
        add(asset_feature::animations, asset_.animations.size(), "animation is", "animations are",
            "played, one at a time");
        add(asset_feature::cameras, asset_.cameras.size(), "camera of the file is", "cameras of the file are",
            "not used: the key camera of the stage geometry names one");
        add(asset_feature::lights, asset_.lights.size(), "light of the file is", "lights of the file are",
            "not used: the frame parameters have the light");
        add(asset_feature::morph_targets, parts_.morphed, "mesh has", "meshes have", "morph targets");
        add(asset_feature::other_scenes, omitted.other_scenes, "other scene of the file is",
            "other scenes of the file are", "not shown");
        add(asset_feature::points_and_lines, omitted.points_and_lines, "primitive of points or lines is",
            "primitives of points or lines are", "not drawn");
        add(asset_feature::skins, parts_.skins, "skin is", "skins are", "applied");
        add(asset_feature::vertex_colors, parts_.colored, "primitive has", "primitives have",
            "vertex colours, which are not shown");
        if (!omitted.extensions.empty())
            out_.push_back(
                {asset_feature::extensions, omitted.extensions.size(),
                 fmt::format("these extensions are ignored: {}", fmt::join(omitted.extensions, ", "))});
        if (omitted.invalid > 0)
            out_.push_back({asset_feature::invalid_parts, omitted.invalid,
                            fmt::format("{} left out, the first because of: {}",
                                        counted(omitted.invalid, "invalid part is", "invalid parts are"),
                                        omitted.first_invalid)});
        std::sort(out_.begin(), out_.end(),
                  [](const auto& a, const auto& b) { return a.feature < b.feature; });
        return std::move(out_);
    }

private:
    void add(asset_feature feature, u64 n, const char* one, const char* several, const char* rest) {
        if (n > 0) out_.push_back({feature, n, fmt::format("{} {}", counted(n, one, several), rest)});
    }

    template <typename Has>
    void add_materials(asset_feature feature, const Has& has, const char* one, const char* several) {
        const auto n = static_cast<u64>(std::count_if(parts_.materials.begin(), parts_.materials.end(),
                                                      [&](const asset_material* m) { return has(*m); }));
        add(feature, n, "material", "materials", n == 1 ? one : several);
    }

    void of_materials() {
        using m = const asset_material&;
        add_materials(
            asset_feature::alpha_blend, [](m a) { return a.alpha == alpha_mode::blend; },
            "is transparent and is drawn opaque", "are transparent and are drawn opaque");
        add_materials(
            asset_feature::alpha_mask, [](m a) { return a.alpha == alpha_mode::mask; },
            "has an alpha mask and is drawn opaque", "have an alpha mask and are drawn opaque");
        add_materials(
            asset_feature::clearcoat, [](m a) { return a.clearcoat > 0; },
            "has a clearcoat, which is not shown", "have a clearcoat, which is not shown");
        add_materials(
            asset_feature::clearcoat_details,
            [](m a) {
                return a.clearcoat > 0 &&
                       (a.clearcoat_roughness_texture.present() || a.clearcoat_normal_texture.present());
            },
            "has a clearcoat with a roughness or normal map, which is not shown",
            "have clearcoats with roughness or normal maps, which are not shown");
        add_materials(asset_feature::emission, emits, "emits light, which is not shown",
                      "emit light, which is not shown");
        add_materials(
            asset_feature::height_maps, [](m a) { return a.height_texture.present(); },
            "has a bump map, which is not shown", "have bump maps, which are not shown");
        add_materials(
            asset_feature::metallic_roughness,
            [](m a) { return !a.unlit && (a.metallic > 0 || a.roughness < 1); },
            "is metallic or glossy and is drawn matt", "are metallic or glossy and are drawn matt");
        add_materials(
            asset_feature::normal_maps, [](m a) { return a.normal_texture.present(); },
            "has a normal map, which is not shown", "have normal maps, which are not shown");
        add_materials(
            asset_feature::occlusion_maps, [](m a) { return a.occlusion_texture.present(); },
            "has an occlusion map, which is not shown", "have occlusion maps, which are not shown");
        add_materials(
            asset_feature::opacity_maps, [](m a) { return a.opacity_texture.present(); },
            "has an opacity map, which is not shown", "have opacity maps, which are not shown");
        add_materials(
            asset_feature::specular, [](m a) { return a.has_specular_texture; },
            "has a specular or reflection map, which is not shown",
            "have specular or reflection maps, which are not shown");
        add_materials(asset_feature::specular_factors, has_specular_factors,
                      "has a specular colour or an index of refraction, which is not shown",
                      "have specular colours or indices of refraction, which are not shown");
        add_materials(
            asset_feature::transmission, [](m a) { return a.transmission > 0; },
            "lets light pass and is drawn opaque (in a G-buffer: as plain alpha)",
            "let light pass and are drawn opaque (in a G-buffer: as plain alpha)");
        add_materials(
            asset_feature::unlit, [](m a) { return a.unlit; }, "is unlit and is drawn with light",
            "are unlit and are drawn with light");
    }

    /// Only textures of base colours: the pictures that do not show these properties show no other textures.
    void of_textures() {
        std::set<u32> used;
        for (const asset_material* m : parts_.materials)
            if (m->base_color_texture.present()) used.insert(m->base_color_texture.texture);
        u64 wrapped = 0, nearest = 0;
        for (const u32 t : used) {
            const asset_texture& texture = asset_.textures[t];
            wrapped +=
                texture.wrap_u != texture_wrap::repeat || texture.wrap_v != texture_wrap::repeat ? 1 : 0;
            nearest += texture.nearest ? 1 : 0;
        }
        add(asset_feature::wrap_modes, wrapped, "texture has", "textures have",
            "clamped or mirrored edges and repeat instead");
        add(asset_feature::nearest_filter, nearest, "texture is", "textures are",
            "interpolated, although the file asks for whole texels");
    }

    const scene_asset& asset_;
    shown_parts parts_;
    std::vector<feature_use> out_;
};

}  // namespace

std::vector<feature_use> features_of(const scene_asset& asset) { return feature_list(asset).make(); }

bool is_shown(asset_feature feature, shown_by pictures) noexcept {
    switch (feature) {
        case asset_feature::animations:
        case asset_feature::morph_targets:
        case asset_feature::skins:
            return true;
        case asset_feature::alpha_blend:
        case asset_feature::alpha_mask:
        case asset_feature::clearcoat:
        case asset_feature::emission:
        case asset_feature::lights:
        case asset_feature::metallic_roughness:
        case asset_feature::nearest_filter:
        case asset_feature::normal_maps:
        case asset_feature::occlusion_maps:
        case asset_feature::opacity_maps:
        case asset_feature::unlit:
        case asset_feature::vertex_colors:
        case asset_feature::wrap_modes:
            return pictures == shown_by::surface;
        default:
            return false;
    }
}

const char* name_of(asset_feature feature) noexcept {
    switch (feature) {
        case asset_feature::alpha_blend:
            return "alpha_blend";
        case asset_feature::alpha_mask:
            return "alpha_mask";
        case asset_feature::animations:
            return "animations";
        case asset_feature::cameras:
            return "cameras";
        case asset_feature::clearcoat:
            return "clearcoat";
        case asset_feature::clearcoat_details:
            return "clearcoat_details";
        case asset_feature::emission:
            return "emission";
        case asset_feature::extensions:
            return "extensions";
        case asset_feature::height_maps:
            return "height_maps";
        case asset_feature::invalid_parts:
            return "invalid_parts";
        case asset_feature::lights:
            return "lights";
        case asset_feature::metallic_roughness:
            return "metallic_roughness";
        case asset_feature::morph_targets:
            return "morph_targets";
        case asset_feature::nearest_filter:
            return "nearest_filter";
        case asset_feature::normal_maps:
            return "normal_maps";
        case asset_feature::occlusion_maps:
            return "occlusion_maps";
        case asset_feature::opacity_maps:
            return "opacity_maps";
        case asset_feature::other_scenes:
            return "other_scenes";
        case asset_feature::points_and_lines:
            return "points_and_lines";
        case asset_feature::skins:
            return "skins";
        case asset_feature::specular:
            return "specular";
        case asset_feature::specular_factors:
            return "specular_factors";
        case asset_feature::transmission:
            return "transmission";
        case asset_feature::unlit:
            return "unlit";
        case asset_feature::vertex_colors:
            return "vertex_colors";
        case asset_feature::wrap_modes:
            return "wrap_modes";
    }
    return "unknown";
}

void warn_of_hidden_features(const scene_asset& asset, shown_by pictures) {
    for (const feature_use& use : features_of(asset))
        if (!is_shown(use.feature, pictures)) log::warning("{}: {}", asset.name, use.text);
}

}  // namespace carousel::stages
