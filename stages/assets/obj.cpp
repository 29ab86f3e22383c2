#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>

#include "core/log.hpp"
#include "kernels/body/srgb.hpp"
#include "stages/assets/obj_parts.hpp"
#include "stages/assets/scene_files.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

/// The properties by which two vertices of the mesh can differ.
struct vertex_key {
    tinyobj::index_t corner;
    u32 primitive = 0;
    f32 normal[3] = {};  ///< the computed normal; all three are 0 if the file has a normal for this corner
    bool operator==(const vertex_key& o) const noexcept {
        return corner.vertex_index == o.corner.vertex_index &&
               corner.texcoord_index == o.corner.texcoord_index &&
               corner.normal_index == o.corner.normal_index && primitive == o.primitive &&
               std::equal(std::begin(normal), std::end(normal), std::begin(o.normal));
    }
};

struct key_hash {
    std::size_t operator()(const vertex_key& k) const noexcept {
        u64 h = static_cast<u32>(k.corner.vertex_index);
        const auto mix = [&](u32 word) { h = h * 0x9E3779B97F4A7C15ULL + word; };
        mix(static_cast<u32>(k.corner.texcoord_index));
        mix(static_cast<u32>(k.corner.normal_index));
        mix(k.primitive);
        for (const f32 n : k.normal) mix(std::bit_cast<u32>(n == 0 ? 0.0F : n));  // -0 equals 0
        return h ^ (h >> 29);
    }
};

/// The corners of triangles, and the face of each triangle.
struct triangle_list {
    std::vector<tinyobj::index_t> corners;
    std::vector<u32> face;
};

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
    throw settings_error("mesh", fmt::format("{}: {}", path.string(), why));
}

std::string read_text(const std::filesystem::path& path) {
    struct stat s {};
    if (stat(path.c_str(), &s) != 0) {
        refuse(path, fmt::format("can't read the mesh file: {}", errno_text(errno)));
    }
    if (!S_ISREG(s.st_mode)) {
        refuse(path, "not a file; give the path of a Wavefront OBJ file");
    }
    if (s.st_size == 0) {
        refuse(path, "the mesh file is empty");
    }
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) {
        refuse(path, fmt::format("can't read the mesh file: {}", errno_text(errno)));
    }
    return std::move(text).str();
}

/// Replaces each comment that follows other words by blanks, because the library does not expect comments in
/// faces.
void blank_comments(std::string& text) {
    for (auto at = text.find('#'); at != std::string::npos; at = text.find('#', at)) {
        if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\t') {
            ++at;  // this # is kept, because it is part of a name, or begins a line, where the library
                   // accepts a comment
            continue;
        }
        while (at < text.size() && text[at] != '\n' && text[at] != '\r') {
            text[at++] = ' ';
        }
    }
}

point3 point_of(const tinyobj::attrib_t& a, int i) {
    const auto* p = &a.vertices[3 * static_cast<std::size_t>(i)];
    return {p[0], p[1], p[2]};
}

/// Appends the vertex of a corner to a primitive.
void append_vertex(const tinyobj::attrib_t& a, const vertex_key& key, asset_primitive& to) {
    const tinyobj::index_t& i = key.corner;
    const auto at = [](int index, std::size_t size) { return size * static_cast<std::size_t>(index); };
    const auto* const p = &a.vertices[at(i.vertex_index, 3)];
    to.positions.insert(to.positions.end(), p, p + 3);
    f32 normal[3];
    std::copy_n(key.normal, 3, normal);
    if (i.normal_index >= 0) {
        const auto* n = &a.normals[at(i.normal_index, 3)];
        const f64 given[3] = {n[0], n[1], n[2]};
        store_unit(given, normal);
    }
    to.normals.insert(to.normals.end(), normal, normal + 3);
    f32 uv[2] = {0, 0};
    if (i.texcoord_index >= 0) {
        uv[0] = a.texcoords[at(i.texcoord_index, 2)];
        // OBJ measures v from the picture's bottom
        uv[1] = 1.0F - a.texcoords[at(i.texcoord_index, 2) + 1];
    }
    to.coordinates[0].insert(to.coordinates[0].end(), uv, uv + 2);
}

/// Vertex colours are an extension of the format: r, g and b after a point, in sRGB.
void append_color(const tinyobj::attrib_t& a, int vertex, asset_primitive& to) {
    for (std::size_t k = 0; k < 3; ++k) {
        const f64 c = a.colors[3 * static_cast<std::size_t>(vertex) + k];
        to.colors.push_back(static_cast<f32>(kernels::body::srgb_to_linear(std::clamp(c, 0.0, 1.0))));
    }
    to.colors.push_back(1);
}

/// Splits faces into triangles; face f has sizes[f] corners.
triangle_list as_triangles(const tinyobj::attrib_t& a, const std::vector<tinyobj::index_t>& corners,
                           const std::vector<u32>& sizes, const std::filesystem::path& path) {
    triangle_list out;
    out.corners.reserve(3 * corners.size());
    std::vector<point3> points;
    std::vector<u32> cut;
    u64 budget = polygon_budget;
    std::size_t first = 0;
    for (std::size_t f = 0; f < sizes.size(); ++f) {
        points.clear();
        cut.clear();
        for (u32 k = 0; k < sizes[f]; ++k) points.push_back(point_of(a, corners[first + k].vertex_index));
        if (!triangulate(points, budget, cut)) {
            refuse(path, fmt::format(
                             "a concave face with {} corners is too complex to triangulate: export triangles",
                             sizes[f]));
        }
        for (const u32 k : cut) out.corners.push_back(corners[first + k]);
        out.face.insert(out.face.end(), cut.size() / 3, static_cast<u32>(f));
        first += sizes[f];
    }
    return out;
}

/// The normals of corners without a normal in the file; empty if all corners have one.
std::vector<point3> missing_normals(const tinyobj::attrib_t& a, const triangle_list& triangles,
                                    const std::vector<u32>& group_of_face, bool by_group) {
    const auto complete = [](const tinyobj::index_t& c) { return c.normal_index >= 0; };
    if (std::all_of(triangles.corners.begin(), triangles.corners.end(), complete)) return {};
    std::vector<point3> points;
    for (std::size_t i = 0; i < a.vertices.size() / 3; ++i)
        points.push_back(point_of(a, static_cast<int>(i)));
    std::vector<u32> corners;
    for (const tinyobj::index_t& c : triangles.corners) corners.push_back(static_cast<u32>(c.vertex_index));
    smoothing how{by_group, {}};
    for (const u32 f : triangles.face) how.group.push_back(group_of_face[f]);
    return corner_normals(points, corners, how);
}

/// True if the file contains an `s` statement and therefore defines which edges are smooth.
bool has_smoothing(const std::string& text) {
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at), at += at < text.size() ? 1 : 0) {
        at = text.find_first_not_of(" \t", at);
        if (at == std::string::npos) break;
        if (text[at] == 's' && at + 1 < text.size() && (text[at + 1] == ' ' || text[at + 1] == '\t'))
            return true;
    }
    return false;
}

}  // namespace

scene_asset read_obj(const std::filesystem::path& path) {
    std::string text = read_text(path);
    blank_comments(text);
    const std::vector<u32> face_sizes = check_obj(text, path.string());

    tinyobj::attrib_t attributes;
    std::vector<tinyobj::shape_t> shapes;
    std::vector<tinyobj::material_t> materials;
    std::string warning;
    std::string problem;
    std::istringstream stream(text);
    const auto folder = path.parent_path();
    obj_material_reader material_reader(folder);
    if (!tinyobj::LoadObj(&attributes, &shapes, &materials, &warning, &problem, &stream, &material_reader,
                          false, false)) {
        refuse(path,
               fmt::format("not a readable Wavefront OBJ file: {}", problem.substr(0, problem.find('\n'))));
    }
    if (!warning.empty()) {
        log::warning("{}: {}", path.string(), warning.substr(0, warning.find('\n')));
    }
    std::vector<tinyobj::index_t> corners;
    std::vector<int> material_of_face;
    std::vector<u32> group_of_face;
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const auto& shape : shapes) {
        append(corners, shape.mesh.indices);
        append(material_of_face, shape.mesh.material_ids);
        append(group_of_face, shape.mesh.smoothing_group_ids);
    }
    if (material_of_face.size() != face_sizes.size() || group_of_face.size() != face_sizes.size() ||
        corners.size() != std::accumulate(face_sizes.begin(), face_sizes.end(), std::size_t{0})) {
        refuse(path, "not a readable Wavefront OBJ file: some of its faces can't be read");
    }
    // A file must not cause a read beyond its own data, regardless of how the library interprets a line.
    const auto inside = [](int index, std::size_t count, bool optional) {
        return (optional && index == -1) || (index >= 0 && static_cast<std::size_t>(index) < count);
    };
    for (const auto& c : corners) {
        if (!inside(c.vertex_index, attributes.vertices.size() / 3, false) ||
            !inside(c.normal_index, attributes.normals.size() / 3, true) ||
            !inside(c.texcoord_index, attributes.texcoords.size() / 2, true)) {
            refuse(path, "a face names a point, normal or texture coordinate that the file does not have");
        }
    }
    const triangle_list triangles = as_triangles(attributes, corners, face_sizes, path);
    const std::vector<point3> computed =
        missing_normals(attributes, triangles, group_of_face, has_smoothing(text));
    const bool colored =
        attributes.colors.size() == attributes.vertices.size() &&
        std::any_of(attributes.colors.begin(), attributes.colors.end(), [](f32 c) { return c != 1; });

    scene_asset asset;
    asset.name = path.string();
    asset.nodes.resize(1);
    asset.nodes[0].mesh = 0;
    asset.roots = {0};
    asset.meshes.resize(1);
    std::vector<asset_primitive>& primitives = asset.meshes[0].primitives;
    std::map<int, u32> primitive_of_material;  // only materials that are in use; -1 means no material
    std::unordered_map<vertex_key, u32, key_hash> known;
    for (std::size_t c = 0; c < triangles.corners.size(); ++c) {
        const int material = material_of_face[triangles.face[c / 3]];
        const auto [part, is_new_part] =
            primitive_of_material.try_emplace(material, static_cast<u32>(primitives.size()));
        if (is_new_part) {
            primitives.emplace_back();
            primitives.back().unit_normals = true;
            primitives.back().coordinates.resize(1);
            if (material >= 0 && static_cast<std::size_t>(material) < materials.size())
                primitives.back().material =
                    add_material(asset, materials[static_cast<std::size_t>(material)], folder);
        }
        asset_primitive& primitive = primitives[part->second];
        vertex_key key{triangles.corners[c], part->second, {}};
        if (key.corner.normal_index < 0) {
            const f64 sum[3] = {computed[c][0], computed[c][1], computed[c][2]};
            store_unit(sum, key.normal);
        }
        const auto [at, is_new] = known.try_emplace(key, static_cast<u32>(primitive.vertex_count()));
        if (is_new) {
            append_vertex(attributes, key, primitive);
            if (colored) append_color(attributes, key.corner.vertex_index, primitive);
        }
        primitive.indices.push_back(at->second);
        if (c % 3 == 0) primitive.triangle_numbers.push_back(static_cast<u32>(c / 3));
    }
    return asset;
}

}  // namespace carousel::stages
