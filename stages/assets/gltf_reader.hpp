#pragma once
// The parts of the glTF reader, which fill one scene_asset. Internal to the glTF reader.

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "stages/assets/gltf_accessor.hpp"
#include "stages/assets/gltf_document.hpp"
#include "stages/assets/scene_asset.hpp"

namespace carousel::stages {

class gltf_reader {
public:
    gltf_reader(const std::filesystem::path& path, u64 most_bytes, bool base_colors_only);
    [[nodiscard]] scene_asset read();

private:
    // gltf.cpp: the scene, its nodes, cameras and lights
    [[nodiscard]] std::vector<u32> roots() const;
    void visit_nodes();
    void read_node(u32 number, const gltf_value& node);
    void read_instances(asset_node& to, const gltf_value& node);
    void read_cameras();
    void read_lights();
    void note_extensions();
    /// Reads a part without which pictures can be made. If the part is invalid, it is left out and counted.
    /// Returns false in this case.
    bool optional_part(const std::function<void()>& read);

    // gltf_primitive.cpp: meshes
    void read_mesh(u32 number);
    /// Returns nothing for points and lines.
    [[nodiscard]] std::optional<asset_primitive> read_primitive(const gltf_value& primitive);
    void read_optional_attributes(asset_primitive& to, const gltf_value& primitive,
                                  const class gltf_attributes& from);
    void read_targets(asset_primitive& to, const gltf_value& primitive);

    // gltf_material.cpp
    /// Reads the material that the primitive names, once; no_index if the primitive names none.
    [[nodiscard]] u32 material_of(const gltf_value& primitive);
    void read_material(asset_material& to, const gltf_value& material);
    void read_material_extensions(asset_material& to, const gltf_value& material);
    [[nodiscard]] texture_slot slot_of(const gltf_value& texture_info, u8 channel, bool with_image);
    /// The slot that `from`.`key` describes, which is left out if it is invalid.
    [[nodiscard]] texture_slot optional_slot(const gltf_value& from, const char* key, u8 channel = 0);
    [[nodiscard]] u32 texture_of(const gltf_value& texture_info, bool with_image);

    // gltf_animation.cpp: skins and animations
    void read_skins();
    void check_skins();
    void read_animations();
    [[nodiscard]] std::optional<animation_channel> read_channel(const gltf_value& animation, u64 number);

    gltf_document document_;
    scene_asset asset_;
    bool base_colors_only_ = false;
    std::set<u64> known_materials_, known_textures_, known_meshes_;
};

/// The sets of texture coordinates that the material uses, in ascending order.
[[nodiscard]] std::set<u32> texture_sets_of(const asset_material& material);

}  // namespace carousel::stages
