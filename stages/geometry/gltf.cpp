#include "stages/geometry/mesh_data.hpp"

#include <cmath>
#include <map>
#include <new>
#include <set>

#include <fmt/format.h>

#include "core/log.hpp"
#include "stages/geometry/gltf_primitive.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

class gltf_reader {
public:
    explicit gltf_reader(const std::filesystem::path& path) : document_(path), name_(path.string()) {}

    mesh_data read() {
        const gltf_value root = document_.root();
        std::vector<bool> seen(root.count("nodes"));
        struct visit {
            u64 node;
            affine from;
        };
        std::vector<visit> open;
        for (const u64 i : roots()) {
            open.push_back({i, {}});
        }
        while (!open.empty()) {
            const visit v = open.back();
            open.pop_back();
            if (v.node >= seen.size()) {
                root.refuse(fmt::format("something names node {}, but the file has {}", v.node, seen.size()));
            }
            const gltf_value node = root.at("nodes", v.node);
            if (seen[v.node]) {
                node.refuse("it is a child of two nodes or scenes, or of itself; nodes must form a tree");
            }
            seen[v.node] = true;
            const affine here = v.from.times(transform_of(node));
            if (node.has("mesh")) {
                show(document_.referred(node, "mesh", "meshes"), here, node);
            }
            for (u64 k = node.count("children"); k-- > 0;) {
                open.push_back({node.integer_at("children", k, UINT32_MAX), here});
            }
        }
        if (mesh_.indices.empty()) {
            root.refuse(other_than_triangles_ ? "it has only points and lines: nothing can be rendered"
                                              : "no node of its scene shows a mesh");
        }
        warn();
        fit_unit_sphere(mesh_.vertices, name_);
        return std::move(mesh_);
    }

private:
    /// Returns the nodes of the scene in reverse order; if the file has no scenes, returns all root nodes,
    /// also in reverse order.
    std::vector<u64> roots() {
        const gltf_value root = document_.root();
        std::vector<u64> out;
        if (root.count("scenes") > 0) {
            const u64 chosen = root.integer_or("scene", 0, 0, root.count("scenes") - 1);
            const gltf_value scene = root.at("scenes", chosen);
            for (u64 k = scene.count("nodes"); k-- > 0;) {
                out.push_back(scene.integer_at("nodes", k, UINT32_MAX));
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
        for (u64 i = root.count("nodes"); i-- > 0;) {
            if (!children.contains(i)) {
                out.push_back(i);
            }
        }
        return out;
    }

    void show(const gltf_value& mesh, const affine& at, const gltf_value& node) {
        if (mesh.count("primitives") == 0) {
            mesh.refuse("it has no primitives");
        }
        if (node.has("skin")) hidden_.insert("skinned meshes are shown in their bind pose");
        for (u64 i = 0; i < mesh.count("primitives"); ++i) {
            const gltf_value primitive = mesh.at("primitives", i);
            const known_surface appearance = surface_of(primitive);
            auto triangles = read_primitive(document_, primitive, appearance.texture_set);
            if (!triangles) {
                other_than_triangles_ = true;
                hidden_.insert("points and lines are not drawn");
                continue;
            }
            if (primitive.member("attributes").has("COLOR_0")) hidden_.insert("vertex colours are not shown");
            if (primitive.count("targets") > 0) hidden_.insert("morph targets are not applied");
            if (appearance.double_sided) add_backs(*triangles);
            for (auto& v : triangles->vertices) {
                appearance.transform.apply(v.texture);
                if (!std::isfinite(v.texture[0]) || !std::isfinite(v.texture[1])) {
                    primitive.refuse(
                        "its material's KHR_texture_transform moves a texture coordinate out of the range of "
                        "a float");
                }
            }
            append(mesh_, *triangles, at, appearance.surface, node);
        }
    }

    struct known_surface {
        u32 surface = 0;
        u64 texture_set = 0;
        texture_transform transform;
        bool double_sided = false;
    };

    /// Returns the primitive's surface; the first call for a surface creates it.
    known_surface surface_of(const gltf_value& primitive) {
        const bool named = primitive.has("material");
        const u64 number = named ? primitive.integer("material", 0, UINT32_MAX) : u64{UINT32_MAX} + 1;
        if (const auto known = known_.find(number); known != known_.end()) {
            return known->second;
        }
        known_surface out;
        surface made;
        if (named) {
            const gltf_value material = document_.referred(primitive, "material", "materials");
            out.double_sided = material.flag_or("doubleSided", false);
            note_hidden(material);
            if (const auto appearance = material.find("pbrMetallicRoughness")) {
                f64 factor[4] = {1, 1, 1, 1};
                appearance->numbers("baseColorFactor", factor);
                for (std::size_t k = 0; k < 3; ++k) {
                    made.factor[k] = static_cast<f32>(factor[k]);
                }
                if (const auto texture = appearance->find("baseColorTexture")) {
                    out.texture_set = texture->integer_or("texCoord", 0, 0, 31);
                    out.transform = texture_transform_of(*texture, out.texture_set);
                    made.image = image_of(*texture);
                }
            }
        }
        mesh_.surfaces.push_back(std::move(made));
        out.surface = static_cast<u32>(mesh_.surfaces.size() - 1);
        known_[number] = out;
        return out;
    }

    picture image_of(const gltf_value& texture_info) {
        const gltf_value texture = document_.referred(texture_info, "index", "textures");
        if (texture.has("sampler")) {
            const gltf_value sampler = document_.referred(texture, "sampler", "samplers");
            constexpr u64 repeat = 10497;
            if (sampler.integer_or("wrapS", repeat, 0, UINT32_MAX) != repeat ||
                sampler.integer_or("wrapT", repeat, 0, UINT32_MAX) != repeat)
                hidden_.insert("textures with clamped edges are repeated instead");
        }
        return document_.image(document_.referred(texture, "source", "images"));
    }

    /// Records which properties a material specifies in addition to a base colour.
    void note_hidden(const gltf_value& material) {
        if (material.text_or("alphaMode", "OPAQUE") != "OPAQUE")
            hidden_.insert("transparent materials are drawn opaque");
        if (material.has("normalTexture")) hidden_.insert("normal maps are not shown");
        if (material.has("occlusionTexture")) hidden_.insert("occlusion maps are not shown");
        f64 emitted[3] = {0, 0, 0};
        material.numbers("emissiveFactor", emitted);
        if (material.has("emissiveTexture")) hidden_.insert("emissive maps are not shown");
        if (!material.has("emissiveTexture") && (emitted[0] > 0 || emitted[1] > 0 || emitted[2] > 0))
            hidden_.insert("emitted light is not shown");
        const auto appearance = material.find("pbrMetallicRoughness");
        if (appearance && appearance->has("metallicRoughnessTexture"))
            hidden_.insert("metallic and roughness maps are not shown");
    }

    /// Logs one warning for each kind of property that the file has and a picture does not show.
    void warn() {
        const gltf_value root = document_.root();
        if (root.count("animations") > 0) hidden_.insert("animations are not played");
        if (root.count("cameras") > 0) hidden_.insert("cameras of the file are not used");
        std::vector<std::string> extensions;
        for (u64 i = 0; i < root.count("extensionsUsed"); ++i) {
            const std::string name = root.text_at("extensionsUsed", i);
            if (!gltf_document::is_supported(name)) extensions.push_back(name.substr(0, 80));
        }
        if (!extensions.empty())
            hidden_.insert(fmt::format("these extensions are ignored: {}", fmt::join(extensions, ", ")));
        for (const std::string& what : hidden_) log::warning("{}: {}", name_, what);
    }

    gltf_document document_;
    std::string name_;
    mesh_data mesh_;
    std::map<u64, known_surface> known_;  ///< by the material's index
    std::set<std::string> hidden_;        ///< the kinds of properties that the file has and a picture does
                                          ///< not show
    bool other_than_triangles_ = false;
};

}  // namespace

mesh_data load_gltf(const std::filesystem::path& path) {
    try {
        return gltf_reader(path).read();
    } catch (const std::bad_alloc&) {
        throw settings_error("mesh",
                             fmt::format("{}: the mesh needs more memory than there is", path.string()));
    }
}

}  // namespace carousel::stages
