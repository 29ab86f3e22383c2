#pragma once
// What a file of a scene contains (glTF, OBJ, PLY), in host memory: the readers fill it, a source makes its
// asset block from it. Plain data. A reader guarantees the following, so that no user has to check:
//   - every index is in range or no_index; the nodes of the scene form trees;
//   - arrays that belong to the vertices of a primitive have one entry per vertex or are empty;
//   - all numbers are finite.
// Right-handed space, y up, lengths in the file's units. Triangles are counter-clockwise seen from outside.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "stages/assets/affine.hpp"
#include "stages/assets/texture.hpp"

namespace carousel::stages {

inline constexpr u32 no_index = UINT32_MAX;

enum class texture_wrap : u8 { repeat, clamp, mirror };

/// A picture and how it is sampled.
struct asset_texture {
    u32 image = no_index;  ///< in scene_asset::images
    texture_wrap wrap_u = texture_wrap::repeat, wrap_v = texture_wrap::repeat;
    bool nearest = false;  ///< magnified without interpolation
};

/// A texture as one property of a material uses it.
struct texture_slot {
    u32 texture = no_index;  ///< in scene_asset::textures; no_index: the property has no texture
    u32 set = 0;             ///< set of texture coordinates
    u8 channel = 0;          ///< 0 red to 3 alpha; only for properties that are one number
    texture_transform transform;
    [[nodiscard]] bool present() const noexcept { return texture != no_index; }
};

enum class alpha_mode : u8 { opaque, mask, blend };

/// A metallic-roughness material. Colours are linear. A texture multiplies its factor.
struct asset_material {
    std::string name;
    f32 base_color[4] = {1, 1, 1, 1};
    f32 metallic = 1, roughness = 1;
    f32 emissive[3] = {0, 0, 0};  ///< without `emissive_strength`
    f32 emissive_strength = 1;
    f32 normal_scale = 1;                               ///< factor of x and y of the normal texture
    f32 occlusion_strength = 1;                         ///< 0: no occlusion
    texture_slot base_color_texture, emissive_texture;  ///< sRGB
    texture_slot metallic_texture, roughness_texture;   ///< linear; glTF: channels 2 and 1 of one texture
    texture_slot normal_texture, occlusion_texture;     ///< linear
    texture_slot opacity_texture;  ///< linear; OBJ only (map_d): glTF has the opacity in the base colour
    texture_slot height_texture;   ///< a height map (OBJ: map_Bump), which is not a normal map
    alpha_mode alpha = alpha_mode::opaque;
    f32 alpha_cutoff = 0.5F;
    bool double_sided = false, unlit = false;
    f32 clearcoat = 0, clearcoat_roughness = 0, clearcoat_normal_scale = 1;
    texture_slot clearcoat_texture, clearcoat_roughness_texture, clearcoat_normal_texture;
    f32 transmission = 0;               ///< KHR_materials_transmission: part of the light that passes
    f32 specular[3] = {1, 1, 1};        ///< factor of the reflectance 0.04 of non-metals; OBJ: Ks
    bool has_specular_texture = false;  ///< a map of specular colour or of reflections, which is not read
};

/// Differences to the vertices of a primitive at weight 1; three numbers per vertex, or empty.
struct morph_target {
    std::vector<f32> positions, normals, tangents;
};

/// Triangles with one material.
struct asset_primitive {
    u32 material = no_index;   ///< no_index: white, metallic 1, roughness 1 as asset_material{}
    std::vector<u32> indices;  ///< three per triangle
    /// The place of each triangle among all triangles of the mesh, if the file mixes materials (OBJ). Empty:
    /// the triangles of this primitive follow those of the one before it. All primitives of a mesh have it or
    /// none.
    std::vector<u32> triangle_numbers;
    std::vector<f32> positions;
    std::vector<f32> normals;   ///< as in the file, not always of unit length; empty: flat triangles
    std::vector<f32> tangents;  ///< x, y, z, and the sign of the bitangent
    std::vector<std::vector<f32>> coordinates;  ///< two numbers per vertex for each set; a set may be empty
    std::vector<f32> colors;                    ///< linear RGBA
    bool unit_normals = false;  ///< the reader has computed the normals, and all have unit length
    u32 influences = 0;         ///< joints per vertex: 0, 4 or 8
    std::vector<u16> joints;    ///< index into asset_skin::joints
    std::vector<f32> weights;
    std::vector<morph_target> targets;
    [[nodiscard]] u64 vertex_count() const noexcept { return positions.size() / 3; }
    [[nodiscard]] u64 triangle_count() const noexcept { return indices.size() / 3; }
};

struct asset_mesh {
    std::string name;
    std::vector<asset_primitive> primitives;  ///< empty: no node of the scene shows the mesh
    std::vector<f32> weights;                 ///< of morph targets; missing ones are 0
};

struct asset_skin {
    std::string name;
    std::vector<u32> joints;           ///< nodes
    std::vector<affine> inverse_bind;  ///< one per joint
};

struct asset_camera {
    std::string name;
    bool perspective = true;
    f32 fov_y = 0;                        ///< radians
    f32 aspect = 0;                       ///< width / height; 0: that of the picture
    f32 near = 0, far = 0;                ///< far 0: unlimited
    f32 half_width = 0, half_height = 0;  ///< orthographic only
};

enum class light_kind : u8 { directional, point, spot };

/// KHR_lights_punctual. The light shines along -z of its node.
struct asset_light {
    std::string name;
    light_kind kind = light_kind::point;
    f32 color[3] = {1, 1, 1};                       ///< linear
    f32 intensity = 1;                              ///< directional: lux; point and spot: candela
    f32 range = 0;                                  ///< 0: unlimited
    f32 inner_cone = 0, outer_cone = 0.785398163F;  ///< spot: half angles, radians
};

struct asset_node {
    std::string name;
    u32 parent = no_index;
    std::vector<u32> children;
    bool has_matrix = false;  ///< then `matrix` is the transform, and animations do not change it
    affine matrix;
    f64 translation[3] = {0, 0, 0}, rotation[4] = {0, 0, 0, 1}, scale[3] = {1, 1, 1};
    u32 mesh = no_index, skin = no_index, camera = no_index, light = no_index;
    std::vector<f32> weights;       ///< instead of those of the mesh, if not empty
    std::vector<affine> instances;  ///< EXT_mesh_gpu_instancing: the mesh is shown once per entry
    /// The transform from the node's space to that of its parent.
    [[nodiscard]] affine local() const;
};

enum class animated_property : u8 { translation, rotation, scale, weights };
enum class interpolation : u8 { step, linear, cubic };

struct animation_channel {
    u32 node = no_index;
    animated_property property = animated_property::translation;
    interpolation between = interpolation::linear;
    u32 width = 3;            ///< numbers per value: 3, 4 for rotations, the number of targets for weights
    std::vector<f32> times;   ///< seconds, ascending
    std::vector<f32> values;  ///< width numbers per time; cubic: in-tangent, value, out-tangent per time
};

struct asset_animation {
    std::string name;
    std::vector<animation_channel> channels;
    f32 duration = 0;  ///< last time of any channel
};

/// Parts of the file that have no place in scene_asset, and parts that are invalid and were left out.
struct asset_omissions {
    u64 points_and_lines = 0;             ///< primitives of these kinds
    u64 other_scenes = 0;                 ///< scenes of the file that are not shown
    std::vector<std::string> extensions;  ///< extensions that the file uses and the reader does not know
    u64 invalid = 0;                      ///< optional parts that are invalid
    std::string first_invalid;            ///< the reader's message for the first of them
};

struct scene_asset {
    std::string name;  ///< path, for messages
    std::vector<asset_node> nodes;
    std::vector<u32> roots;  ///< of the scene that is shown
    std::vector<asset_mesh> meshes;
    std::vector<asset_material> materials;
    std::vector<asset_texture> textures;
    std::vector<picture> images;
    std::vector<asset_skin> skins;
    std::vector<asset_camera> cameras;
    std::vector<asset_light> lights;
    std::vector<asset_animation> animations;
    asset_omissions omitted;

    /// The nodes of the scene, parents before children; each subtree is contiguous.
    [[nodiscard]] std::vector<u32> preorder() const;
    /// For each node its transform to the space of the scene; the identity for nodes outside the scene.
    [[nodiscard]] std::vector<affine> world_transforms() const;
};

/// Totals of the scene; a mesh counts once per node and instance that shows it.
struct asset_totals {
    u64 shown_meshes = 0, triangles = 0, vertices = 0;
};
[[nodiscard]] asset_totals totals_of(const scene_asset& asset);

}  // namespace carousel::stages
