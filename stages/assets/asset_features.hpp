#pragma once
// What a scene file contains and a picture may not show, by kind: for one warning per kind, and for
// `carousel mesh-info`.

#include <string>
#include <vector>

#include "stages/assets/scene_asset.hpp"

namespace carousel::stages {

/// A kind of property that a renderer shows or does not show.
enum class asset_feature : u8 {
    alpha_blend,
    alpha_mask,
    animations,
    cameras,
    clearcoat,
    clearcoat_details,  ///< maps of its roughness and normals; it has one roughness
    emission,
    extensions,  ///< extensions that no reader knows; never shown
    height_maps,
    invalid_parts,  ///< never shown
    lights,
    metallic_roughness,
    morph_targets,
    nearest_filter,
    normal_maps,
    occlusion_maps,
    opacity_maps,
    other_scenes,
    points_and_lines,
    skins,
    specular,
    specular_factors,
    transmission,
    unlit,
    vertex_colors,
    wrap_modes,
};

struct feature_use {
    asset_feature feature;
    u64 count;         ///< how many parts of the scene use the feature; never 0
    std::string text;  ///< the warning, if a picture does not show it: "2 skins are not animated: ..."
};

/// The features that the scene uses, in the order of the enumeration, with those that pictures show.
[[nodiscard]] std::vector<feature_use> features_of(const scene_asset& asset);

/// Which pictures: those that fragment makes by itself, or those that light makes from a G-buffer of a mesh
/// with `full_materials`.
enum class shown_by : u8 { picture, surface };
[[nodiscard]] bool is_shown(asset_feature feature, shown_by pictures) noexcept;

/// The feature's name: "alpha_blend".
[[nodiscard]] const char* name_of(asset_feature feature) noexcept;

/// Logs one warning for each kind of feature that the scene uses and these pictures do not show.
void warn_of_hidden_features(const scene_asset& asset, shown_by pictures);

}  // namespace carousel::stages
