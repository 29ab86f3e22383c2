#include "mesh_info/mesh_info.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/errors.hpp"
#include "stages/assets/asset_features.hpp"
#include "stages/assets/scene_files.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
using namespace carousel::stages;

struct box {
    f64 low[3], high[3];
};

/// The box of a primitive that has positions.
box box_of(const asset_primitive& p) {
    box out{};
    for (std::size_t k = 0; k < 3; ++k) {
        out.low[k] = out.high[k] = p.positions[k];
        for (std::size_t i = k; i < p.positions.size(); i += 3) {
            out.low[k] = std::min<f64>(out.low[k], p.positions[i]);
            out.high[k] = std::max<f64>(out.high[k], p.positions[i]);
        }
    }
    return out;
}

/// Transforms the corners of boxes and not all vertices, because a small file can show a large mesh very
/// often.
void add_bounds(json& info, const scene_asset& asset) {
    constexpr f64 infinity = std::numeric_limits<f64>::infinity();
    f64 low[3] = {infinity, infinity, infinity}, high[3] = {-infinity, -infinity, -infinity};
    const std::vector<affine> world = asset.world_transforms();
    std::vector<std::vector<box>> boxes;
    for (const asset_mesh& mesh : asset.meshes) {
        boxes.emplace_back();
        for (const asset_primitive& p : mesh.primitives)
            if (!p.positions.empty()) boxes.back().push_back(box_of(p));
    }
    const auto extend = [&](u32 mesh, const affine& at) {
        for (const box& b : boxes[mesh]) {
            for (u32 corner = 0; corner < 8; ++corner) {
                f64 from[3], to[3];
                for (u32 k = 0; k < 3; ++k) from[k] = (corner >> k & 1U) != 0 ? b.high[k] : b.low[k];
                at.point(from, to);
                for (std::size_t k = 0; k < 3; ++k) {
                    low[k] = std::min(low[k], to[k]);
                    high[k] = std::max(high[k], to[k]);
                }
            }
        }
    };
    for (const u32 i : asset.preorder()) {
        const asset_node& node = asset.nodes[i];
        if (node.mesh == no_index) continue;
        if (node.instances.empty()) extend(node.mesh, world[i]);
        for (const affine& instance : node.instances) extend(node.mesh, world[i].times(instance));
    }
    info["low"] = low;
    info["high"] = high;
}

json images_of(const scene_asset& asset) {
    json out = json::array();
    for (const picture& p : asset.images) {
        if (p.none()) continue;  // nothing that is shown uses it
        json image = {{"name", p.file.empty() ? p.name : p.file.string()}};
        try {
            const texture_size size = size_of_texture(p, "mesh");
            image["width"] = size.width;
            image["height"] = size.height;
        } catch (const config_error& e) {
            image["error"] = e.what();
        }
        out.push_back(std::move(image));
    }
    return out;
}

/// The animations, as the key `clip` of the stage geometry can name them.
json clips_of(const scene_asset& asset) {
    json out = json::array();
    for (std::size_t i = 0; i < asset.animations.size(); ++i) {
        const asset_animation& a = asset.animations[i];
        out.push_back({{"clip", a.name.empty() ? fmt::format("{}", i) : a.name}, {"seconds", a.duration}});
    }
    return out;
}

std::string counted(const json& info, const char* key, const char* one, const char* several) {
    const u64 n = info.at(key).get<u64>();
    return fmt::format("{} {}", n, n == 1 ? one : several);
}

}  // namespace

json mesh_info(const std::filesystem::path& file) {
    const scene_asset asset = read_scene_file(file);
    const asset_totals totals = totals_of(asset);
    u64 primitives = 0, targets = 0, instances = 0;
    for (const asset_mesh& mesh : asset.meshes) {
        primitives += mesh.primitives.size();
        u64 most = 0;
        for (const asset_primitive& p : mesh.primitives) most = std::max<u64>(most, p.targets.size());
        targets += most;
    }
    for (const asset_node& node : asset.nodes) instances += node.instances.size();
    json info = {{"file", file.string()},
                 {"nodes", asset.nodes.size()},
                 {"meshes", asset.meshes.size()},
                 {"primitives", primitives},
                 {"triangles", totals.triangles},
                 {"vertices", totals.vertices},
                 {"materials", asset.materials.size()},
                 {"textures", asset.textures.size()},
                 {"skins", asset.skins.size()},
                 {"morph_targets", targets},
                 {"animations", asset.animations.size()},
                 {"cameras", asset.cameras.size()},
                 {"lights", asset.lights.size()},
                 {"instances", instances},
                 {"images", images_of(asset)},
                 {"clips", clips_of(asset)},
                 {"features", json::array()}};
    add_bounds(info, asset);
    for (const feature_use& use : features_of(asset))
        info["features"].push_back({{"feature", name_of(use.feature)},
                                    {"count", use.count},
                                    {"shown", is_shown(use.feature, shown_by::surface)},
                                    {"needs_surface", !is_shown(use.feature, shown_by::picture) &&
                                                          is_shown(use.feature, shown_by::surface)},
                                    {"text", use.text}});
    return info;
}

std::string mesh_info_text(const json& info) {
    std::string out = info.at("file").get<std::string>() + "\n";
    const auto line = [&](const char* title, const std::string& text) {
        out += fmt::format("  {:<10} {}\n", title, text);
    };
    line("scene", counted(info, "nodes", "node", "nodes") + ", " + counted(info, "meshes", "mesh", "meshes") +
                      ", " + counted(info, "primitives", "primitive", "primitives") + ", " +
                      counted(info, "instances", "instance", "instances"));
    line("drawn", counted(info, "triangles", "triangle", "triangles") + ", " +
                      counted(info, "vertices", "vertex", "vertices"));
    std::string box;
    for (std::size_t k = 0; k < 3; ++k)
        box += fmt::format("{}{:.6g} to {:.6g}", k > 0 ? ", " : "", info.at("low").at(k).get<f64>(),
                           info.at("high").at(k).get<f64>());
    line("x, y, z", box);
    line("surfaces", counted(info, "materials", "material", "materials") + ", " +
                         counted(info, "textures", "texture", "textures"));
    line("motion", counted(info, "skins", "skin", "skins") + ", " +
                       counted(info, "morph_targets", "morph target", "morph targets") + ", " +
                       counted(info, "animations", "animation", "animations"));
    for (const json& clip : info.at("clips"))
        line("clip",
             fmt::format("{}: {:.6g} s", clip.at("clip").get<std::string>(), clip.at("seconds").get<f64>()));
    line("view",
         counted(info, "cameras", "camera", "cameras") + ", " + counted(info, "lights", "light", "lights"));
    for (const json& image : info.at("images"))
        line("image", image.contains("error")
                          ? image.at("error").get<std::string>()
                          : fmt::format("{}: {} x {}", image.at("name").get<std::string>(),
                                        image.at("width").get<u32>(), image.at("height").get<u32>()));
    std::string needs;
    for (const json& feature : info.at("features"))
        if (feature.at("needs_surface").get<bool>())
            needs += (needs.empty() ? "" : ", ") + feature.at("feature").get<std::string>();
    if (!needs.empty())
        out += fmt::format("Only with full_materials = true and a G-buffer (looks.toml):\n  {}\n", needs);
    bool any = false;
    for (const json& feature : info.at("features")) {
        if (feature.at("shown").get<bool>()) continue;
        if (!any) out += "Not in the picture:\n";
        any = true;
        out += "  " + feature.at("text").get<std::string>() + "\n";
    }
    const json& images = info.at("images");
    const bool complete =
        std::none_of(images.begin(), images.end(), [](const json& i) { return i.contains("error"); });
    if (!any && complete && needs.empty()) out += "The picture shows everything that the file contains.\n";
    return out;
}

}  // namespace carousel::supervisor
