// The glTF reader: materials, textures and images. A material is read once, when a primitive names it first.
#include <algorithm>

#include <fmt/format.h>

#include "stages/assets/gltf_reader.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

texture_wrap wrap_of(const gltf_value& sampler, const char* key) {
    constexpr u64 repeat = 10497, clamp = 33071, mirror = 33648;
    const u64 given = sampler.integer_or(key, repeat, 0, UINT32_MAX);
    if (given == clamp) return texture_wrap::clamp;
    return given == mirror ? texture_wrap::mirror : texture_wrap::repeat;
}

constexpr u64 nearest = 9728;

}  // namespace

std::set<u32> texture_sets_of(const asset_material& m) {
    std::set<u32> out;
    for (const texture_slot* slot :
         {&m.base_color_texture, &m.emissive_texture, &m.metallic_texture, &m.roughness_texture,
          &m.normal_texture, &m.occlusion_texture, &m.opacity_texture, &m.height_texture,
          &m.clearcoat_texture, &m.clearcoat_roughness_texture, &m.clearcoat_normal_texture})
        if (slot->present()) out.insert(slot->set);
    return out;
}

u32 gltf_reader::material_of(const gltf_value& primitive) {
    if (!primitive.has("material")) return no_index;
    const gltf_value material = document_.referred(primitive, "material", "materials");
    const u32 number = static_cast<u32>(primitive.integer("material", 0, UINT32_MAX));
    if (known_materials_.insert(number).second) read_material(asset_.materials[number], material);
    return number;
}

void gltf_reader::read_material(asset_material& to, const gltf_value& material) {
    to.double_sided = material.flag_or("doubleSided", false);
    if (const auto appearance = material.find("pbrMetallicRoughness")) {
        read_floats(*appearance, "baseColorFactor", to.base_color);
        if (const auto texture = appearance->find("baseColorTexture"))
            to.base_color_texture = slot_of(*texture, 0, true);
        optional_part([&] { to.metallic = number_within(*appearance, "metallicFactor", 1, 0, 1); });
        optional_part([&] { to.roughness = number_within(*appearance, "roughnessFactor", 1, 0, 1); });
        to.metallic_texture = optional_slot(*appearance, "metallicRoughnessTexture", 2);
        to.roughness_texture = to.metallic_texture;
        to.roughness_texture.channel = 1;
    }
    optional_part([&] { to.name = material.text_or("name", ""); });
    to.normal_texture = optional_slot(material, "normalTexture");
    to.occlusion_texture = optional_slot(material, "occlusionTexture");
    to.emissive_texture = optional_slot(material, "emissiveTexture");
    optional_part([&] {
        if (const auto map = material.find("normalTexture"))
            to.normal_scale = number_within(*map, "scale", 1, -largest_float, largest_float);
        if (const auto map = material.find("occlusionTexture"))
            to.occlusion_strength = number_within(*map, "strength", 1, 0, 1);
    });
    optional_part([&] { read_floats(material, "emissiveFactor", to.emissive); });
    optional_part([&] {
        const std::string mode = material.text_or("alphaMode", "OPAQUE");
        if (mode != "OPAQUE" && mode != "MASK" && mode != "BLEND")
            material.refuse(
                fmt::format("\"alphaMode\" = \"{}\": expected OPAQUE, MASK or BLEND", mode.substr(0, 20)));
        to.alpha =
            mode == "MASK" ? alpha_mode::mask : (mode == "BLEND" ? alpha_mode::blend : alpha_mode::opaque);
        to.alpha_cutoff = number_within(material, "alphaCutoff", 0.5, 0, largest_float);
    });
    optional_part([&] { read_material_extensions(to, material); });
}

void gltf_reader::read_material_extensions(asset_material& to, const gltf_value& material) {
    to.unlit = material.extension("KHR_materials_unlit").has_value();
    if (const auto e = material.extension("KHR_materials_emissive_strength"))
        to.emissive_strength = number_within(*e, "emissiveStrength", 1, 0, largest_float);
    if (const auto e = material.extension("KHR_materials_clearcoat")) {
        to.clearcoat = number_within(*e, "clearcoatFactor", 0, 0, 1);
        to.clearcoat_roughness = number_within(*e, "clearcoatRoughnessFactor", 0, 0, 1);
        to.clearcoat_texture = optional_slot(*e, "clearcoatTexture", 0);
        to.clearcoat_roughness_texture = optional_slot(*e, "clearcoatRoughnessTexture", 1);
        to.clearcoat_normal_texture = optional_slot(*e, "clearcoatNormalTexture");
        if (const auto map = e->find("clearcoatNormalTexture"))
            to.clearcoat_normal_scale = number_within(*map, "scale", 1, -largest_float, largest_float);
    }
    if (const auto e = material.extension("KHR_materials_transmission"))
        to.transmission = number_within(*e, "transmissionFactor", 0, 0, 1);
    f64 reflectance = 1;
    if (const auto e = material.extension("KHR_materials_ior")) {
        const f64 ior = number_within(*e, "ior", 1.5, 0, 1000);
        // An index of 0 stands for a reflectance of 1 at every angle.
        const f64 root = ior == 0 ? 1 : (ior - 1) / (ior + 1);
        reflectance = root * root / 0.04;
    }
    f32 color[3] = {1, 1, 1}, factor = 1;
    if (const auto e = material.extension("KHR_materials_specular")) {
        factor = number_within(*e, "specularFactor", 1, 0, 1);
        read_floats(*e, "specularColorFactor", color);
        to.has_specular_texture = e->has("specularTexture") || e->has("specularColorTexture");
    }
    for (std::size_t k = 0; k < 3; ++k) to.specular[k] = static_cast<f32>(reflectance * factor * color[k]);
}

texture_slot gltf_reader::slot_of(const gltf_value& texture_info, u8 channel, bool with_image) {
    texture_slot out;
    u64 set = texture_info.integer_or("texCoord", 0, 0, 31);
    out.transform = texture_transform_of(texture_info, set);
    out.set = static_cast<u32>(set);
    out.channel = channel;
    out.texture = texture_of(texture_info, with_image);
    return out;
}

texture_slot gltf_reader::optional_slot(const gltf_value& from, const char* key, u8 channel) {
    texture_slot out;
    optional_part([&] {
        if (const auto info = from.find(key)) out = slot_of(*info, channel, !base_colors_only_);
    });
    return out;
}

u32 gltf_reader::texture_of(const gltf_value& texture_info, bool with_image) {
    const gltf_value texture = document_.referred(texture_info, "index", "textures");
    const u32 number = static_cast<u32>(texture_info.integer("index", 0, UINT32_MAX));
    const bool is_known = known_textures_.contains(number);
    if (is_known && (!with_image || !asset_.images[asset_.textures[number].image].none())) return number;
    asset_texture made;
    if (texture.has("sampler")) {
        const gltf_value sampler = document_.referred(texture, "sampler", "samplers");
        made.wrap_u = wrap_of(sampler, "wrapS");
        made.wrap_v = wrap_of(sampler, "wrapT");
        made.nearest = sampler.integer_or("magFilter", 0, 0, UINT32_MAX) == nearest;
    }
    const gltf_value image = document_.referred(texture, "source", "images");
    made.image = static_cast<u32>(texture.integer("source", 0, UINT32_MAX));
    if (with_image && asset_.images[made.image].none()) asset_.images[made.image] = document_.image(image);
    asset_.textures[number] = made;
    known_textures_.insert(number);
    return number;
}

}  // namespace carousel::stages
