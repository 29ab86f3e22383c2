// The glTF reader: meshes. A mesh is read once, when a node of the scene shows it first.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stages/assets/gltf_compression.hpp"
#include "stages/assets/gltf_reader.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

/// The attributes of a primitive: of its accessors or, if it is compressed, of the decompressed mesh.
class gltf_attributes {
public:
    gltf_attributes(gltf_document& document, const gltf_value& primitive);

    [[nodiscard]] bool has(const std::string& key) const { return json_.has(key.c_str()); }
    /// All components of all vertices. Refuses another number of vertices, types other than `types`, and
    /// numbers that are not finite.
    [[nodiscard]] std::vector<f32> read(const std::string& key,
                                        std::initializer_list<std::string_view> types) const;
    [[nodiscard]] u64 vertex_count() const noexcept { return vertex_count_; }
    [[nodiscard]] bool compressed() const noexcept { return compressed_; }
    /// Number of components of an attribute that read() has returned.
    [[nodiscard]] u32 components(const std::string& key) const;
    /// The indices of the vertices, in the primitive's order.
    [[nodiscard]] std::vector<u32> indices() const;

private:
    [[nodiscard]] bool is_decompressed(const std::string& key) const {
        const auto found = decompressed_.find(key);
        return found != decompressed_.end() && !found->second.values.empty();
    }

    gltf_document& document_;
    const gltf_value& primitive_;
    gltf_value json_;
    u64 vertex_count_ = 0;
    bool compressed_ = false;
    std::vector<u32> indices_;
    std::map<std::string, gltf_compression::draco_attribute> decompressed_;
};

namespace {

enum mode : u64 { triangles = 4, strip = 5, fan = 6 };

std::vector<u32> as_triangles(const std::vector<u32>& list, u64 kind, const gltf_value& primitive) {
    const u64 n = list.size();
    if (n < 3 || (kind == triangles && n % 3 != 0)) {
        primitive.refuse(fmt::format("it has {} corners; {}", n,
                                     kind == triangles ? "a list of triangles needs a multiple of 3"
                                                       : "a strip or fan of triangles needs 3 or more"));
    }
    if (kind == triangles) {
        return list;
    }
    std::vector<u32> out;
    for (u64 i = 0; i + 2 < n; ++i) {
        const u64 odd = i % 2;
        const u64 corners[3] = {kind == strip ? i : i + 1, kind == strip ? i + 1 + odd : i + 2,
                                kind == strip ? i + 2 - odd : 0};
        for (const u64 c : corners) {
            out.push_back(list[c]);
        }
    }
    return out;
}

}  // namespace

gltf_attributes::gltf_attributes(gltf_document& document, const gltf_value& primitive)
    : document_(document), primitive_(primitive), json_(primitive.member("attributes")) {
    const auto draco = primitive.extension("KHR_draco_mesh_compression");
    // Without the library, a file that does not require it has uncompressed accessors as well.
    if (!draco || !gltf_compression::has_draco) {
        vertex_count_ = gltf_accessor(document, json_, "POSITION", {"VEC3"}).count();
        return;
    }
    std::vector<std::string> names = {"POSITION", "NORMAL",    "TANGENT",  "COLOR_0",
                                      "JOINTS_0", "WEIGHTS_0", "JOINTS_1", "WEIGHTS_1"};
    for (u32 set = 0; set < 32; ++set) names.push_back(fmt::format("TEXCOORD_{}", set));
    std::vector<gltf_compression::draco_request> wanted;
    for (std::string& name : names) {
        if (!json_.has(name.c_str())) continue;
        const gltf_value accessor = document.referred(json_, name.c_str(), "accessors");
        wanted.push_back({std::move(name), accessor.integer("componentType", 5120, 5126),
                          accessor.flag_or("normalized", false)});
    }
    std::vector<gltf_compression::draco_attribute> found;
    const auto bytes = document.view(document.referred(*draco, "bufferView", "bufferViews"));
    auto mesh = gltf_compression::decompress_draco(document, *draco, bytes, wanted, found);
    for (std::size_t k = 0; k < wanted.size(); ++k) decompressed_[wanted[k].name] = std::move(found[k]);
    vertex_count_ = mesh.vertex_count;
    indices_ = std::move(mesh.indices);
    compressed_ = true;
}

std::vector<f32> gltf_attributes::read(const std::string& key,
                                       std::initializer_list<std::string_view> types) const {
    if (is_decompressed(key)) {
        const auto& from = decompressed_.at(key);
        if (std::none_of(types.begin(), types.end(), [&](std::string_view type) {
                return type.back() - '0' == static_cast<int>(from.components);
            }))
            primitive_.refuse(fmt::format("the compressed {} has {} components", key, from.components));
        if (!std::all_of(from.values.begin(), from.values.end(), [](f32 x) { return std::isfinite(x); }))
            primitive_.refuse(fmt::format("the compressed {} is not finite", key));
        document_.charge(primitive_.place(), from.values.size() * sizeof(f32));
        return from.values;
    }
    const gltf_accessor from(document_, json_, key.c_str(), types);
    if (from.count() != vertex_count_) {
        primitive_.refuse(fmt::format("it has {} of {}, but {} positions", from.count(), key, vertex_count_));
    }
    return from.values();
}

u32 gltf_attributes::components(const std::string& key) const {
    if (is_decompressed(key)) return decompressed_.at(key).components;
    return gltf_accessor(document_, json_, key.c_str(), {"VEC2", "VEC3", "VEC4"}).components();
}

std::vector<u32> gltf_attributes::indices() const {
    if (compressed_) {
        document_.charge(primitive_.place(), indices_.size() * sizeof(u32));
        return indices_;
    }
    std::vector<u32> out;
    if (primitive_.integer_or("indices", UINT32_MAX, 0, UINT32_MAX) == UINT32_MAX) {
        document_.charge(primitive_.place(), vertex_count_ * sizeof(u32));
        for (u64 i = 0; i < vertex_count_; ++i) {
            out.push_back(static_cast<u32>(i));
        }
        return out;
    }
    const gltf_accessor indices(document_, primitive_, "indices", {"SCALAR"});
    indices.require_indices(primitive_);
    document_.charge(primitive_.place(), indices.count() * sizeof(u32));
    out.reserve(indices.count());
    for (u64 i = 0; i < indices.count(); ++i) {
        out.push_back(indices.index(i));
        if (out.back() >= vertex_count_) {
            primitive_.refuse(
                fmt::format("index {} is {}, but there are {} positions", i, out.back(), vertex_count_));
        }
    }
    return out;
}

void gltf_reader::read_mesh(u32 number) {
    if (!known_meshes_.insert(number).second) return;
    const gltf_value mesh = document_.root().at("meshes", number);
    if (mesh.count("primitives") == 0) {
        mesh.refuse("it has no primitives");
    }
    asset_mesh& to = asset_.meshes[number];
    optional_part([&] { to.name = mesh.text_or("name", ""); });
    optional_part([&] { to.weights = mesh.number_list("weights", 4096); });
    for (u64 i = 0; i < mesh.count("primitives"); ++i) {
        auto primitive = read_primitive(mesh.at("primitives", i));
        if (primitive)
            to.primitives.push_back(*std::move(primitive));
        else
            ++asset_.omitted.points_and_lines;
    }
}

std::optional<asset_primitive> gltf_reader::read_primitive(const gltf_value& primitive) {
    const u64 kind = primitive.integer_or("mode", triangles, 0, 6);
    if (kind < triangles) {
        return std::nullopt;
    }
    asset_primitive p;
    p.material = material_of(primitive);
    const asset_material material = p.material == no_index ? asset_material{} : asset_.materials[p.material];
    const gltf_attributes attributes(document_, primitive);
    p.positions = attributes.read("POSITION", {"VEC3"});
    if (attributes.has("NORMAL")) p.normals = attributes.read("NORMAL", {"VEC3"});
    std::set<u32> sets = texture_sets_of(material);
    sets.insert(0);
    p.coordinates.resize(*sets.rbegin() + 1);
    for (const u32 set : sets) {
        const std::string key = fmt::format("TEXCOORD_{}", set);
        if (!attributes.has(key)) continue;
        const auto read = [&] { p.coordinates[set] = attributes.read(key, {"VEC2"}); };
        // Without the coordinates of the base colour the picture would be wrong.
        const texture_slot& base = material.base_color_texture;
        if (set == base.set)
            read();
        else
            optional_part(read);
    }
    while (!p.coordinates.empty() && p.coordinates.back().empty()) p.coordinates.pop_back();
    // A compressed strip is decompressed into separate triangles.
    const u64 listed = attributes.compressed() ? u64{triangles} : kind;
    const std::vector<u32> list = attributes.indices();
    document_.charge(primitive.place(), list.size() * sizeof(u32) * (listed == triangles ? 1 : 3));
    p.indices = as_triangles(list, listed, primitive);
    read_optional_attributes(p, primitive, attributes);
    read_targets(p, primitive);
    return p;
}

void gltf_reader::read_optional_attributes(asset_primitive& to, const gltf_value& primitive,
                                           const gltf_attributes& from) {
    if (from.has("TANGENT") && !to.normals.empty())
        optional_part([&] { to.tangents = from.read("TANGENT", {"VEC4"}); });
    if (from.has("COLOR_0"))
        optional_part([&] {
            const std::vector<f32> given = from.read("COLOR_0", {"VEC3", "VEC4"});
            const u32 components = from.components("COLOR_0");
            document_.charge(primitive.place(), from.vertex_count() * 4 * sizeof(f32));
            to.colors.reserve(from.vertex_count() * 4);
            for (u64 i = 0; i < from.vertex_count(); ++i) {
                const f32* const c = &given[i * components];
                to.colors.insert(to.colors.end(), {c[0], c[1], c[2], components == 4 ? c[3] : 1.0F});
            }
        });
    optional_part([&] {
        std::vector<f32> joints[2], weights[2];
        std::size_t groups = 0;
        for (; groups < 2; ++groups) {
            const std::string key = fmt::format("JOINTS_{}", groups),
                              weight = fmt::format("WEIGHTS_{}", groups);
            if (!from.has(key) || !from.has(weight)) break;
            joints[groups] = from.read(key, {"VEC4"});
            weights[groups] = from.read(weight, {"VEC4"});
        }
        const u64 influences = from.vertex_count() * 4 * groups;
        document_.charge(primitive.place(), influences * (sizeof(u16) + sizeof(f32)));
        to.joints.reserve(influences);
        to.weights.reserve(influences);
        for (u64 i = 0; groups > 0 && i < from.vertex_count(); ++i) {
            for (std::size_t g = 0; g < groups; ++g) {
                for (std::size_t k = 4 * i; k < 4 * i + 4; ++k) {
                    // The joint of a weight of 0 may be any number.
                    const f32 joint = weights[g][k] != 0 ? joints[g][k] : 0.0F;
                    to.joints.push_back(static_cast<u16>(std::clamp(joint, 0.0F, 65535.0F)));
                    to.weights.push_back(weights[g][k]);
                }
            }
        }
        to.influences = static_cast<u32>(4 * groups);
    });
}

void gltf_reader::read_targets(asset_primitive& to, const gltf_value& primitive) {
    const bool valid = optional_part([&] {
        for (u64 i = 0; i < primitive.count("targets"); ++i) {
            const gltf_value target = primitive.at("targets", i);
            morph_target made;
            const auto read = [&](const char* key, std::vector<f32>& values) {
                if (!target.has(key)) return;
                const gltf_accessor from(document_, target, key, {"VEC3"});
                if (from.count() != to.vertex_count())
                    target.refuse(fmt::format("it has {} of {}, but {} positions", from.count(), key,
                                              to.vertex_count()));
                values = from.values();
            };
            read("POSITION", made.positions);
            read("NORMAL", made.normals);
            read("TANGENT", made.tangents);
            to.targets.push_back(std::move(made));
        }
    });
    if (!valid) to.targets.clear();
}

}  // namespace carousel::stages
