// The glTF reader: the scene and its nodes, cameras, lights; and what the file has that no reader knows.
#include <algorithm>
#include <cmath>
#include <new>

#include <fmt/format.h>

#include "shm/sealed_memory.hpp"
#include "stages/assets/gltf_reader.hpp"
#include "stages/assets/scene_files.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

constexpr f64 pi = 3.14159265358979323846;

void read_transform(asset_node& to, const gltf_value& node) {
    f64 columns[16];
    to.has_matrix = node.numbers("matrix", columns);
    if (to.has_matrix) {
        if (columns[3] != 0 || columns[7] != 0 || columns[11] != 0 || columns[15] != 1) {
            node.refuse("its matrix is not affine: the last row must be 0 0 0 1");
        }
        for (u32 r = 0; r < 3; ++r) {
            for (u32 c = 0; c < 4; ++c) {
                to.matrix.m[4 * r + c] = columns[4 * c + r];
            }
        }
        return;
    }
    node.numbers("translation", to.translation);
    node.numbers("rotation", to.rotation);
    node.numbers("scale", to.scale);
    const f64* const q = to.rotation;
    const f64 length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(length > 0) || !std::isfinite(length)) {
        node.refuse("its rotation is not a quaternion of length 1");
    }
}

}  // namespace

gltf_reader::gltf_reader(const std::filesystem::path& path, u64 most_bytes, bool base_colors_only)
    : document_(path, most_bytes), base_colors_only_(base_colors_only) {
    asset_.name = path.string();
}

bool gltf_reader::optional_part(const std::function<void()>& read) {
    try {
        read();
        return true;
    } catch (const gltf_too_large&) {
        throw;
    } catch (const settings_error& e) {
        if (asset_.omitted.invalid++ == 0) asset_.omitted.first_invalid = e.what();
        return false;
    }
}

scene_asset gltf_reader::read() {
    const gltf_value root = document_.root();
    asset_.nodes.resize(root.count("nodes"));
    asset_.meshes.resize(root.count("meshes"));
    asset_.materials.resize(root.count("materials"));
    asset_.textures.resize(root.count("textures"));
    asset_.images.resize(root.count("images"));
    read_cameras();
    read_lights();
    asset_.skins.resize(root.count("skins"));
    visit_nodes();
    read_skins();
    read_animations();
    note_extensions();
    const bool any = std::any_of(asset_.meshes.begin(), asset_.meshes.end(), [](const asset_mesh& m) {
        return std::any_of(m.primitives.begin(), m.primitives.end(),
                           [](const asset_primitive& p) { return !p.indices.empty(); });
    });
    if (!any) {
        root.refuse(asset_.omitted.points_and_lines > 0
                        ? "it has only points and lines: nothing can be rendered"
                        : "no node of its scene shows a mesh");
    }
    return std::move(asset_);
}

/// Returns the nodes of the scene; if the file has no scenes, returns all root nodes.
std::vector<u32> gltf_reader::roots() const {
    const gltf_value root = document_.root();
    std::vector<u32> out;
    if (root.count("scenes") > 0) {
        const u64 chosen = root.integer_or("scene", 0, 0, root.count("scenes") - 1);
        const gltf_value scene = root.at("scenes", chosen);
        for (u64 k = 0; k < scene.count("nodes"); ++k) {
            out.push_back(static_cast<u32>(scene.integer_at("nodes", k, UINT32_MAX)));
        }
        return out;
    }
    std::set<u64> children;
    for (u64 i = 0; i < root.count("nodes"); ++i) {
        const gltf_value node = root.at("nodes", i);
        for (u64 k = 0; k < node.count("children"); ++k) {
            children.insert(node.integer_at("children", k, UINT32_MAX));
        }
    }
    for (u64 i = 0; i < root.count("nodes"); ++i) {
        if (!children.contains(i)) {
            out.push_back(static_cast<u32>(i));
        }
    }
    return out;
}

void gltf_reader::visit_nodes() {
    const gltf_value root = document_.root();
    if (root.count("scenes") > 1) asset_.omitted.other_scenes = root.count("scenes") - 1;
    std::vector<bool> seen(asset_.nodes.size());
    struct visit {
        u32 node, parent;
    };
    std::vector<visit> open;
    asset_.roots = roots();
    for (auto at = asset_.roots.rbegin(); at != asset_.roots.rend(); ++at) open.push_back({*at, no_index});
    while (!open.empty()) {
        const visit v = open.back();
        open.pop_back();
        if (v.node >= seen.size()) {
            const bool is_child = v.parent != no_index, in_scene = root.count("scenes") > 0;
            const gltf_value from = is_child   ? root.at("nodes", v.parent)
                                    : in_scene ? root.at("scenes", root.integer_or("scene", 0, 0, UINT32_MAX))
                                               : root;
            from.refuse(fmt::format("it names node {}{}, but the file has {}", v.node,
                                    is_child ? " as a child" : "", seen.size()));
        }
        const gltf_value node = root.at("nodes", v.node);
        if (seen[v.node]) {
            node.refuse("it is a child of two nodes or scenes, or of itself; nodes must form a tree");
        }
        seen[v.node] = true;
        read_node(v.node, node);
        asset_node& to = asset_.nodes[v.node];
        to.parent = v.parent;
        for (u64 k = 0; k < node.count("children"); ++k)
            to.children.push_back(static_cast<u32>(node.integer_at("children", k, UINT32_MAX)));
        for (auto at = to.children.rbegin(); at != to.children.rend(); ++at) open.push_back({*at, v.node});
    }
}

void gltf_reader::read_node(u32 number, const gltf_value& node) {
    asset_node& to = asset_.nodes[number];
    read_transform(to, node);
    if (node.has("mesh")) {
        (void)document_.referred(node, "mesh", "meshes");
        to.mesh = static_cast<u32>(node.integer("mesh", 0, UINT32_MAX));
        read_mesh(to.mesh);
    }
    optional_part([&] { to.name = node.text_or("name", ""); });
    optional_part([&] {
        if (!node.has("skin") || to.mesh == no_index) return;
        (void)document_.referred(node, "skin", "skins");
        to.skin = static_cast<u32>(node.integer("skin", 0, UINT32_MAX));
    });
    optional_part([&] {
        if (!node.has("camera")) return;
        (void)document_.referred(node, "camera", "cameras");
        const u32 camera = static_cast<u32>(node.integer("camera", 0, UINT32_MAX));
        if (camera < asset_.cameras.size()) to.camera = camera;
    });
    optional_part([&] {
        const auto light = node.extension("KHR_lights_punctual");
        if (!light) return;
        const u64 named = light->integer("light", 0, UINT32_MAX);
        if (named >= asset_.lights.size())
            light->refuse(fmt::format("it names light {}, but the file has {} valid ones", named,
                                      asset_.lights.size()));
        to.light = static_cast<u32>(named);
    });
    optional_part([&] { to.weights = node.number_list("weights", 4096); });
    optional_part([&] { read_instances(to, node); });
}

void gltf_reader::read_instances(asset_node& to, const gltf_value& node) {
    const auto given = node.extension("EXT_mesh_gpu_instancing");
    if (!given || to.mesh == no_index) return;
    const gltf_value attributes = given->member("attributes");
    std::vector<f32> part[3];
    u64 count = 0;
    constexpr const char* keys[3] = {"TRANSLATION", "ROTATION", "SCALE"};
    for (std::size_t k = 0; k < 3; ++k) {
        if (!attributes.has(keys[k])) continue;
        const gltf_accessor from(document_, attributes, keys[k], {k == 1 ? "VEC4" : "VEC3"});
        if (count != 0 && from.count() != count)
            attributes.refuse(
                fmt::format("{} has {} entries, but another attribute has {}", keys[k], from.count(), count));
        count = from.count();
        part[k] = from.values();
    }
    document_.charge(attributes.place(), count * sizeof(affine));
    std::vector<affine> instances;
    instances.reserve(count);
    for (u64 i = 0; i < count; ++i) {
        f64 t[3] = {0, 0, 0}, q[4] = {0, 0, 0, 1}, s[3] = {1, 1, 1}, length = 0;
        for (u64 k = 0; k < 3; ++k) {
            if (!part[0].empty()) t[k] = part[0][3 * i + k];
            if (!part[2].empty()) s[k] = part[2][3 * i + k];
        }
        for (u64 k = 0; k < 4; ++k) {
            if (!part[1].empty()) q[k] = part[1][4 * i + k];
            length += q[k] * q[k];
        }
        if (!(length > 0)) attributes.refuse(fmt::format("ROTATION {} is not a quaternion of length 1", i));
        instances.push_back(affine::from_parts(t, q, s));
    }
    to.instances = std::move(instances);
}

void gltf_reader::read_cameras() {
    const gltf_value root = document_.root();
    for (u64 i = 0; i < root.count("cameras"); ++i) {
        asset_camera made;
        const bool valid = optional_part([&] {
            const gltf_value camera = root.at("cameras", i);
            made.name = camera.text_or("name", "");
            made.perspective = camera.text_or("type", "") != "orthographic";
            const gltf_value lens = camera.member(made.perspective ? "perspective" : "orthographic");
            made.near = number_within(lens, "znear", -1, 0, largest_float);
            made.far = number_within(lens, "zfar", 0, 0, largest_float);
            if (made.perspective) {
                made.fov_y = number_within(lens, "yfov", 0, 1e-6, pi);
                made.aspect = number_within(lens, "aspectRatio", 0, 0, largest_float);
            } else {
                made.half_width = std::abs(number_within(lens, "xmag", 0, -largest_float, largest_float));
                made.half_height = std::abs(number_within(lens, "ymag", 0, -largest_float, largest_float));
                if (!(made.half_width > 0 && made.half_height > 0))
                    lens.refuse("\"xmag\" and \"ymag\" must not be 0");
            }
            if (made.far != 0 && made.far <= made.near) lens.refuse("\"zfar\" is not greater than \"znear\"");
        });
        // An invalid camera keeps its number, so that the numbers of the others stay those of the file.
        asset_.cameras.push_back(valid ? made : asset_camera{.name = made.name, .fov_y = 0.8F, .near = 0.1F});
    }
}

void gltf_reader::read_lights() {
    optional_part([&] {
        const auto given = document_.root().extension("KHR_lights_punctual");
        for (u64 i = 0; given && i < given->count("lights"); ++i) {
            const gltf_value light = given->at("lights", i);
            asset_light made;
            made.name = light.text_or("name", "");
            const std::string type = light.text_or("type", "");
            if (type == "directional")
                made.kind = light_kind::directional;
            else if (type == "spot")
                made.kind = light_kind::spot;
            else if (type != "point")
                light.refuse(fmt::format("\"type\" = \"{}\": expected directional, point or spot",
                                         type.substr(0, 20)));
            read_floats(light, "color", made.color);
            made.intensity = number_within(light, "intensity", 1, 0, largest_float);
            made.range = number_within(light, "range", 0, 0, largest_float);
            if (const auto cone = light.find("spot")) {
                made.inner_cone = number_within(*cone, "innerConeAngle", 0, 0, pi / 2);
                made.outer_cone = number_within(*cone, "outerConeAngle", pi / 4, 0, pi / 2);
                if (made.inner_cone >= made.outer_cone)
                    cone->refuse("the inner cone is not smaller than the outer one");
            }
            asset_.lights.push_back(std::move(made));
        }
    });
}

void gltf_reader::note_extensions() {
    const gltf_value root = document_.root();
    for (u64 i = 0; i < root.count("extensionsUsed"); ++i) {
        const std::string name = root.text_at("extensionsUsed", i);
        if (!gltf_document::is_supported(name)) asset_.omitted.extensions.push_back(name.substr(0, 80));
    }
}

scene_asset read_gltf(const std::filesystem::path& path, std::optional<u64> most_bytes,
                      bool base_colors_only) {
    try {
        // The other half is for the meshes and textures that are made of the scene.
        return gltf_reader(path, most_bytes.value_or(shm::available_host_bytes() / 2), base_colors_only)
            .read();
    } catch (const std::bad_alloc&) {
        throw settings_error("mesh",
                             fmt::format("{}: the mesh needs more memory than there is", path.string()));
    }
}

}  // namespace carousel::stages
