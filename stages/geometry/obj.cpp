#include "stages/geometry/obj.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>

#define TINYOBJLOADER_IMPLEMENTATION
#include <tiny_obj_loader.h>

#include "core/log.hpp"
#include "stages/geometry/polygon.hpp"
#include "stages/sdk/settings.hpp"

namespace carousel::stages {
namespace {

using vector3 = point3;

struct corner_hash {
    std::size_t operator()(const tinyobj::index_t& i) const noexcept {
        u64 h = static_cast<u32>(i.vertex_index);
        h = h * 0x9E3779B97F4A7C15ULL + static_cast<u32>(i.texcoord_index);
        h = h * 0x9E3779B97F4A7C15ULL + static_cast<u32>(i.normal_index);
        return h ^ (h >> 29);
    }
};

struct corner_equal {
    bool operator()(const tinyobj::index_t& a, const tinyobj::index_t& b) const noexcept {
        return a.vertex_index == b.vertex_index && a.texcoord_index == b.texcoord_index &&
               a.normal_index == b.normal_index;
    }
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

/// Overwrites comments behind other words with blanks: the library doesn't expect them in faces.
void blank_comments(std::string& text) {
    for (auto at = text.find('#'); at != std::string::npos; at = text.find('#', at)) {
        if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\t') {
            ++at;  // at a line's start, which it does expect, or a part of a name
            continue;
        }
        while (at < text.size() && text[at] != '\n' && text[at] != '\r') {
            text[at++] = ' ';
        }
    }
}

vector3 point_of(const tinyobj::attrib_t& a, int i) {
    const auto* p = &a.vertices[3 * static_cast<std::size_t>(i)];
    return {p[0], p[1], p[2]};
}

/// For each point the sum of the triangles' cross products around it: their lengths are the weights by area.
std::vector<vector3> point_normals(const tinyobj::attrib_t& a, const std::vector<tinyobj::index_t>& corners) {
    std::vector<vector3> sums(a.vertices.size() / 3, vector3{});
    for (std::size_t t = 0; t + 2 < corners.size(); t += 3) {
        const vector3 p = point_of(a, corners[t].vertex_index);
        const vector3 q = point_of(a, corners[t + 1].vertex_index);
        const vector3 r = point_of(a, corners[t + 2].vertex_index);
        const vector3 u{q[0] - p[0], q[1] - p[1], q[2] - p[2]};
        const vector3 v{r[0] - p[0], r[1] - p[1], r[2] - p[2]};
        const vector3 n{u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
        for (std::size_t k = 0; k < 3; ++k) {
            for (std::size_t axis = 0; axis < 3; ++axis) {
                sums[static_cast<std::size_t>(corners[t + k].vertex_index)][axis] += n[axis];
            }
        }
    }
    return sums;
}

mesh_vertex make_vertex(const tinyobj::attrib_t& a, const tinyobj::index_t& i,
                        const std::vector<vector3>& computed) {
    mesh_vertex v{};
    const auto at = [](int index, std::size_t size) { return size * static_cast<std::size_t>(index); };
    std::copy_n(a.vertices.begin() + static_cast<std::ptrdiff_t>(at(i.vertex_index, 3)), 3, v.position);
    if (i.normal_index >= 0) {
        const auto* n = &a.normals[at(i.normal_index, 3)];
        const f64 given[3] = {n[0], n[1], n[2]};
        store_unit(given, v.normal);
    } else {
        const vector3& n = computed[static_cast<std::size_t>(i.vertex_index)];
        const f64 mean[3] = {n[0], n[1], n[2]};
        store_unit(mean, v.normal);
    }
    if (i.texcoord_index >= 0) {
        v.texture[0] = a.texcoords[at(i.texcoord_index, 2)];
        // OBJ counts v from the picture's bottom
        v.texture[1] = 1.0F - a.texcoords[at(i.texcoord_index, 2) + 1];
    }
    return v;
}

/// The corners of all faces in turn, `sizes` of them each, as corners of triangles.
std::vector<tinyobj::index_t> as_triangles(const tinyobj::attrib_t& a,
                                           const std::vector<tinyobj::index_t>& corners,
                                           const std::vector<u32>& sizes, const std::filesystem::path& path) {
    std::vector<tinyobj::index_t> out;
    out.reserve(3 * corners.size());
    std::vector<vector3> points;
    std::vector<u32> cut;
    u64 budget = polygon_budget;
    std::size_t first = 0;
    for (const u32 size : sizes) {
        points.clear();
        cut.clear();
        for (u32 k = 0; k < size; ++k) points.push_back(point_of(a, corners[first + k].vertex_index));
        if (!triangulate(points, budget, cut)) {
            refuse(path, fmt::format("a concave face with {} corners is too intricate to be cut into "
                                     "triangles here: export triangles",
                                     size));
        }
        for (const u32 k : cut) out.push_back(corners[first + k]);
        first += size;
    }
    return out;
}

std::filesystem::path texture_of(const std::vector<tinyobj::material_t>& materials,
                                 const std::filesystem::path& folder) {
    for (const auto& m : materials) {
        if (!m.diffuse_texname.empty()) {
            std::string name = m.diffuse_texname;
            std::replace(name.begin(), name.end(), '\\', '/');
            return folder / name;
        }
    }
    return {};
}

}  // namespace

mesh_data load_obj(const std::filesystem::path& path) {
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
    tinyobj::MaterialFileReader material_reader(folder.empty() ? "./" : folder.string() + "/");
    if (!tinyobj::LoadObj(&attributes, &shapes, &materials, &warning, &problem, &stream, &material_reader,
                          false, false)) {
        refuse(path,
               fmt::format("not a readable Wavefront OBJ file: {}", problem.substr(0, problem.find('\n'))));
    }
    if (!warning.empty()) {
        log::warning("{}: {}", path.string(), warning.substr(0, warning.find('\n')));
    }
    std::vector<tinyobj::index_t> corners;
    for (const auto& shape : shapes) {
        corners.insert(corners.end(), shape.mesh.indices.begin(), shape.mesh.indices.end());
    }
    if (corners.size() != std::accumulate(face_sizes.begin(), face_sizes.end(), std::size_t{0})) {
        refuse(path, "not a readable Wavefront OBJ file: some of its faces can't be read");
    }
    // Nothing in a file may lead to a read beyond what it defines, whatever the library makes of a line.
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
    corners = as_triangles(attributes, corners, face_sizes, path);
    const bool complete =
        std::all_of(corners.begin(), corners.end(), [](const auto& c) { return c.normal_index >= 0; });
    const std::vector<vector3> computed =
        complete ? std::vector<vector3>{} : point_normals(attributes, corners);

    mesh_data mesh;
    std::unordered_map<tinyobj::index_t, u32, corner_hash, corner_equal> known;
    mesh.indices.reserve(corners.size());
    for (const auto& corner : corners) {
        const auto [at, is_new] = known.try_emplace(corner, static_cast<u32>(mesh.vertices.size()));
        if (is_new) {
            mesh.vertices.push_back(make_vertex(attributes, corner, computed));
        }
        mesh.indices.push_back(at->second);
    }
    fit_unit_sphere(mesh.vertices, path.string());
    if (const auto file = texture_of(materials, folder); !file.empty()) {
        mesh.surfaces = {surface{{file, {}, {}}, {1, 1, 1}}};
    }
    return mesh;
}

}  // namespace carousel::stages
