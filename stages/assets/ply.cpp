// The PLY reader. Source of the format: Greg Turk, "The PLY Polygon File Format", 1994.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "core/io.hpp"
#include "kernels/body/srgb.hpp"
#include "stages/assets/obj_parts.hpp"
#include "stages/assets/ply_header.hpp"
#include "stages/assets/scene_files.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

/// The place of a property's value in the vertex.
enum class vertex_part : u8 { x, y, z, nx, ny, nz, u, v, red, green, blue, alpha, count };

std::optional<vertex_part> part_named(const std::string& name) {
    static const std::map<std::string, vertex_part> names = {{"x", vertex_part::x},
                                                             {"y", vertex_part::y},
                                                             {"z", vertex_part::z},
                                                             {"nx", vertex_part::nx},
                                                             {"ny", vertex_part::ny},
                                                             {"nz", vertex_part::nz},
                                                             {"s", vertex_part::u},
                                                             {"t", vertex_part::v},
                                                             {"u", vertex_part::u},
                                                             {"v", vertex_part::v},
                                                             {"texture_u", vertex_part::u},
                                                             {"texture_v", vertex_part::v},
                                                             {"red", vertex_part::red},
                                                             {"green", vertex_part::green},
                                                             {"blue", vertex_part::blue},
                                                             {"r", vertex_part::red},
                                                             {"g", vertex_part::green},
                                                             {"b", vertex_part::blue},
                                                             {"diffuse_red", vertex_part::red},
                                                             {"diffuse_green", vertex_part::green},
                                                             {"diffuse_blue", vertex_part::blue},
                                                             {"alpha", vertex_part::alpha}};
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

f64 largest_of(ply_type type) {
    switch (type) {
        case ply_type::u8:
            return 255;
        case ply_type::u16:
            return 65535;
        default:
            return 1;
    }
}

constexpr u32 most_corners = 65536;

class ply_reader {
public:
    ply_reader(const std::string& file, scene_asset& asset)
        : header_(parse_ply_header(file)),
          values_(std::string_view(file).substr(header_.bytes), header_.encoding),
          out_(asset.meshes[0].primitives[0]),
          asset_(asset) {}

    void read() {
        for (const ply_element& element : header_.elements) {
            if (element.properties.empty()) continue;
            u64 smallest = 0;  // bytes of an element, at least
            for (const ply_property& p : element.properties)
                smallest +=
                    header_.encoding == ply_encoding::ascii ? 1 : size_of(p.is_list ? p.count_type : p.type);
            if (element.count * smallest > values_.bytes_left()) throw std::runtime_error(ply_ends_early);
            if (element.name == "vertex")
                read_vertices(element);
            else if (element.name == "face")
                read_faces(element);
            else
                skip(element);
        }
        if (points_.empty()) throw std::runtime_error("it has no vertices: export a mesh");
        if (corners_.empty()) refuse_without_faces();
        for (const u32 c : corners_)
            if (c >= points_.size())
                throw std::runtime_error(
                    fmt::format("a face names vertex {}, but the file has {}", c, points_.size()));
        triangulate_all();
        if (out_.normals.empty()) compute_normals();
    }

private:
    f64 finite(ply_type type) {
        const f64 x = values_.next(type);
        if (!(std::abs(x) <= 3e38))
            throw std::runtime_error("a number is not finite, or out of the range of a float");
        return x;
    }

    [[noreturn]] void refuse_without_faces() const {
        constexpr std::size_t most_names = 8;
        std::string names;
        for (std::size_t i = 0; i < std::min(header_.elements.size(), most_names); ++i)
            names += (i > 0 ? ", " : "") + header_.elements[i].name.substr(0, 40);
        if (header_.elements.size() > most_names) names += " ...";
        throw std::runtime_error(
            fmt::format("it has no \"face\" with 3 or more corners, only these elements: {}; export it with "
                        "triangles or polygons as elements \"face\" with a list \"vertex_indices\"",
                        names));
    }

    void skip(const ply_element& element) {
        for (u64 i = 0; i < element.count; ++i)
            for (const ply_property& p : element.properties) skip(p);
    }
    void skip(const ply_property& p) {
        const u64 n = p.is_list ? length_of(p) : 1;
        for (u64 k = 0; k < n; ++k) (void)values_.next(p.type);
    }
    u64 length_of(const ply_property& p) {
        const f64 n = values_.next(p.count_type);
        if (!(n >= 0 && n <= most_corners && n == std::floor(n)))
            throw std::runtime_error(
                fmt::format("a list has {} entries; at most {} are supported", n, most_corners));
        return static_cast<u64>(n);
    }

    void read_vertices(const ply_element& element) {
        bool has[static_cast<std::size_t>(vertex_part::count)] = {};
        std::vector<std::optional<vertex_part>> parts;
        for (const ply_property& p : element.properties) {
            parts.push_back(p.is_list ? std::nullopt : part_named(p.name));
            if (parts.back()) has[static_cast<std::size_t>(*parts.back())] = true;
        }
        const auto all = [&](vertex_part first, std::size_t n) {
            const auto at = static_cast<std::size_t>(first);
            return std::all_of(has + at, has + at + n, [](bool b) { return b; });
        };
        if (!all(vertex_part::x, 3)) throw std::runtime_error("its vertices have no x, y and z");
        const bool normals = all(vertex_part::nx, 3), coordinates = all(vertex_part::u, 2),
                   colors = all(vertex_part::red, 3);
        if (coordinates) out_.coordinates.resize(1);
        for (u64 i = 0; i < element.count; ++i) {
            f64 value[static_cast<std::size_t>(vertex_part::count)] = {};
            value[static_cast<std::size_t>(vertex_part::alpha)] = 1;
            for (std::size_t k = 0; k < parts.size(); ++k) {
                const ply_property& p = element.properties[k];
                if (!parts[k]) {
                    skip(p);
                    continue;
                }
                const bool is_color = *parts[k] >= vertex_part::red;
                value[static_cast<std::size_t>(*parts[k])] =
                    finite(p.type) / (is_color ? largest_of(p.type) : 1);
            }
            const auto at = [&](vertex_part part) { return value[static_cast<std::size_t>(part)]; };
            points_.push_back({at(vertex_part::x), at(vertex_part::y), at(vertex_part::z)});
            for (const f64 x : points_.back()) out_.positions.push_back(static_cast<f32>(x));
            if (normals) {
                f32 unit[3];
                store_unit({at(vertex_part::nx), at(vertex_part::ny), at(vertex_part::nz)}, unit);
                out_.normals.insert(out_.normals.end(), unit, unit + 3);
            }
            if (coordinates) {  // v is measured from the picture's bottom
                out_.coordinates[0].push_back(static_cast<f32>(at(vertex_part::u)));
                out_.coordinates[0].push_back(static_cast<f32>(1 - at(vertex_part::v)));
            }
            if (colors) {
                for (const vertex_part part : {vertex_part::red, vertex_part::green, vertex_part::blue})
                    out_.colors.push_back(
                        static_cast<f32>(kernels::body::srgb_to_linear(std::clamp(at(part), 0.0, 1.0))));
                out_.colors.push_back(static_cast<f32>(std::clamp(at(vertex_part::alpha), 0.0, 1.0)));
            }
        }
    }

    void read_faces(const ply_element& element) {
        for (u64 i = 0; i < element.count; ++i) {
            for (const ply_property& p : element.properties) {
                if (!p.is_list || (p.name != "vertex_indices" && p.name != "vertex_index")) {
                    skip(p);
                    continue;
                }
                const u64 n = length_of(p);
                for (u64 k = 0; k < n; ++k) {
                    const f64 index = values_.next(p.type);
                    if (!(index >= 0 && index < 4294967295.0 && index == std::floor(index)))
                        throw std::runtime_error(fmt::format("face {} names vertex {}", i, index));
                    if (n >= 3) corners_.push_back(static_cast<u32>(index));
                }
                if (n >= 3)
                    sizes_.push_back(static_cast<u32>(n));
                else if (n > 0)
                    ++asset_.omitted.points_and_lines;
            }
        }
    }

    void triangulate_all() {
        std::vector<point3> polygon;
        std::vector<u32> cut;
        u64 budget = polygon_budget;
        std::size_t first = 0;
        for (const u32 size : sizes_) {
            polygon.clear();
            cut.clear();
            for (u32 k = 0; k < size; ++k) polygon.push_back(points_[corners_[first + k]]);
            if (!triangulate(polygon, budget, cut))
                throw std::runtime_error(fmt::format(
                    "a concave face with {} corners is too complex to triangulate: export triangles", size));
            for (const u32 k : cut) out_.indices.push_back(corners_[first + k]);
            first += size;
        }
    }

    /// Gives corners of one point separate vertices if their normals differ.
    void compute_normals() {
        const std::vector<point3> normals = corner_normals(points_, out_.indices, {});
        asset_primitive made;
        made.coordinates.resize(out_.coordinates.size());
        std::map<std::tuple<u32, u32, u32, u32>, u32> known;
        for (std::size_t c = 0; c < out_.indices.size(); ++c) {
            const u32 from = out_.indices[c];
            f32 unit[3];
            store_unit({normals[c][0], normals[c][1], normals[c][2]}, unit);
            for (f32& n : unit) n = n == 0 ? 0.0F : n;  // -0 equals 0
            const auto key = std::tuple(from, std::bit_cast<u32>(unit[0]), std::bit_cast<u32>(unit[1]),
                                        std::bit_cast<u32>(unit[2]));
            const auto [at, is_new] = known.try_emplace(key, static_cast<u32>(made.vertex_count()));
            made.indices.push_back(at->second);
            if (!is_new) continue;
            const auto copy = [from](const std::vector<f32>& all, std::vector<f32>& to, std::size_t n) {
                if (!all.empty())
                    to.insert(to.end(), all.begin() + static_cast<std::ptrdiff_t>(n * from),
                              all.begin() + static_cast<std::ptrdiff_t>(n * (from + 1)));
            };
            copy(out_.positions, made.positions, 3);
            copy(out_.colors, made.colors, 4);
            if (!out_.coordinates.empty()) copy(out_.coordinates[0], made.coordinates[0], 2);
            made.normals.insert(made.normals.end(), unit, unit + 3);
        }
        out_ = std::move(made);
    }

    ply_header header_;
    ply_values values_;
    asset_primitive& out_;
    scene_asset& asset_;
    std::vector<point3> points_;
    std::vector<u32> corners_, sizes_;
};

}  // namespace

scene_asset read_ply(const std::filesystem::path& path) {
    const auto refuse = [&](std::string_view why) {
        throw settings_error("mesh", fmt::format("{}: {}", path.string(), why));
    };
    std::error_code failed;
    const bool is_file = std::filesystem::is_regular_file(path, failed);
    const std::optional<std::string> file = is_file ? read_file(path.string()) : std::nullopt;
    if (!file)
        refuse(is_file || failed ? "can't read the mesh file" : "not a file; give the path of a PLY file");
    scene_asset asset;
    asset.name = path.string();
    asset.nodes.resize(1);
    asset.nodes[0].mesh = 0;
    asset.roots = {0};
    asset.meshes.resize(1);
    asset.meshes[0].primitives.resize(1);
    try {
        ply_reader(*file, asset).read();
    } catch (const std::bad_alloc&) {
        refuse("the mesh needs more memory than there is");
    } catch (const std::runtime_error& e) {
        refuse(fmt::format("not a readable PLY file: {}", e.what()));
    }
    asset.meshes[0].primitives[0].unit_normals = true;
    return asset;
}

}  // namespace carousel::stages
