// From a scene asset to the one mesh that pictures show.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "device/cpu/memfd.hpp"
#include "stages/assets/obj_parts.hpp"
#include "stages/geometry/file_lights.hpp"
#include "stages/geometry/material_maker.hpp"
#include "stages/geometry/mesh_data.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

constexpr u64 most = u64{1} << 29U;  // limit of the kernels for the number of vertices and of triangles

struct exact_vertex {
    f64 position[3], normal[3];
    f32 texture[2];
    kernels::vertex_detail detail;
    u32 source = 0, flat = no_index;  ///< as vertex_origin
    bool back = false;
};

struct exact_part {
    std::vector<exact_vertex> vertices;
    std::vector<u32> indices;
    bool unit_normals = false;
};

/// Gives each triangle separate vertices whose normal is that of the triangle's plane.
void flatten(exact_part& p) {
    std::vector<exact_vertex> own;
    own.reserve(p.indices.size());
    for (std::size_t t = 0; t < p.indices.size(); t += 3) {
        std::array<exact_vertex, 3> corner{};
        f64 u[3], v[3];
        for (std::size_t k = 0; k < 3; ++k) {
            corner[k] = p.vertices[p.indices[t + k]];
            corner[k].flat = static_cast<u32>(t / 3);
            p.indices[t + k] = static_cast<u32>(t + k);
        }
        for (std::size_t axis = 0; axis < 3; ++axis) {
            u[axis] = corner[1].position[axis] - corner[0].position[axis];
            v[axis] = corner[2].position[axis] - corner[0].position[axis];
        }
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const std::size_t a = (axis + 1) % 3, b = (axis + 2) % 3;
            for (auto& c : corner) {
                c.normal[axis] = u[a] * v[b] - u[b] * v[a];
            }
        }
        own.insert(own.end(), corner.begin(), corner.end());
    }
    p.vertices = std::move(own);
}

/// Adds the back of each triangle: its corners in reverse order, with opposite normals.
void add_backs(exact_part& p) {
    const std::size_t vertices = p.vertices.size(), corners = p.indices.size();
    p.vertices.reserve(2 * vertices);
    p.indices.reserve(2 * corners);
    for (std::size_t i = 0; i < vertices; ++i) {
        exact_vertex back = p.vertices[i];
        for (f64& n : back.normal) n = -n;
        turn_tangent(back.detail);
        back.back = true;
        p.vertices.push_back(back);
    }
    for (std::size_t t = 0; t < corners; t += 3)
        for (const std::size_t k : {t, t + 2, t + 1})
            p.indices.push_back(p.indices[k] + static_cast<u32>(vertices));
}

class mesh_maker {
public:
    /// `origins`: receives the origin of each vertex, unless it is null.
    mesh_maker(const scene_asset& asset, bool all_properties, std::vector<vertex_origin>* origins)
        : asset_(asset), all_properties_(all_properties), origins_(origins), materials_(asset) {}

    mesh_data make() {
        const std::vector<affine> world = asset_.world_transforms();
        for (const u32 i : asset_.preorder()) {
            const asset_node& node = asset_.nodes[i];
            if (node.mesh == no_index) continue;
            node_ = i;
            const std::size_t first = mesh_.indices.size();
            std::vector<u32> numbers;
            const affine at =
                node.skin == no_index ? world[i] : bind_transform(asset_.skins[node.skin], world);
            const std::vector<asset_primitive>& primitives = asset_.meshes[node.mesh].primitives;
            for (std::size_t k = 0; k < primitives.size(); ++k) {
                const asset_primitive& p = primitives[k];
                const u32 surface = surface_of(p.material);
                const exact_part part = exact(p);
                std::vector<u32>& indices = indices_for(material(p.material));
                origin_.primitive = static_cast<u32>(k);
                origin_.instance = 0;
                if (node.instances.empty()) append(part, at, surface, indices);
                for (const affine& instance : node.instances) {
                    append(part, at.times(instance), surface, indices);
                    ++origin_.instance;
                }
                if (&indices == &mesh_.indices)
                    numbers.insert(numbers.end(), p.triangle_numbers.begin(), p.triangle_numbers.end());
            }
            restore_order(first, numbers);
        }
        if (all_properties_) mesh_.materials.maps = materials_.take_maps();
        if (all_properties_) mesh_.materials.lights = lights_of(asset_, world);
        mesh_.cameras = cameras_of(asset_, world);
        // The kernels need an opaque triangle; this one has no area.
        if (all_properties_ && mesh_.indices.empty() && !mesh_.vertices.empty()) mesh_.indices = {0, 0, 0};
        return std::move(mesh_);
    }

private:
    [[noreturn]] void refuse(std::string_view why) const {
        throw settings_error("mesh", fmt::format("{}: nodes[{}]: {}", asset_.name, node_, why));
    }

    const asset_material& material(u32 number) const {
        static const asset_material none;
        static const asset_material matt = [] {
            asset_material m;
            m.metallic = 0;
            return m;
        }();
        if (number != no_index) return asset_.materials[number];
        return asset_.materials.empty() ? matt : none;
    }

    /// Where the triangles of a material are.
    std::vector<u32>& indices_for(const asset_material& m) {
        if (!all_properties_) return mesh_.indices;
        switch (shown_alpha(m)) {
            case alpha_mode::mask:
                return mesh_.materials.masked;
            case alpha_mode::blend:
                return mesh_.materials.blended;
            default:
                return mesh_.indices;
        }
    }

    /// Brings the triangles whose indices begin at `first` into the file's order, because of two triangles at
    /// the same place pictures show the first one.
    void restore_order(std::size_t first, const std::vector<u32>& numbers) {
        if (numbers.empty() || 3 * numbers.size() != mesh_.indices.size() - first) return;
        std::vector<u32> order(numbers.size()), ordered(3 * numbers.size());
        std::iota(order.begin(), order.end(), 0U);
        std::sort(order.begin(), order.end(), [&](u32 a, u32 b) { return numbers[a] < numbers[b]; });
        for (std::size_t t = 0; t < numbers.size(); ++t)
            std::copy_n(&mesh_.indices[first + std::size_t{3} * order[t]], 3, &ordered[3 * t]);
        std::copy(ordered.begin(), ordered.end(), mesh_.indices.begin() + static_cast<std::ptrdiff_t>(first));
    }

    /// Returns the surface of a material; the first call for a material creates it.
    u32 surface_of(u32 number) {
        const auto [known, is_new] = surfaces_.try_emplace(number, static_cast<u32>(mesh_.surfaces.size()));
        if (is_new) {
            const asset_material& m = material(number);
            surface made;
            std::copy_n(m.base_color, 3, made.factor);
            if (m.base_color_texture.present())
                made.image = asset_.images[asset_.textures[m.base_color_texture.texture].image];
            mesh_.surfaces.push_back(std::move(made));
            if (all_properties_) mesh_.materials.records.push_back(materials_.record_of(m));
        }
        return known->second;
    }

    exact_part exact(const asset_primitive& p) const {
        exact_part out;
        const asset_material& m = material(p.material);
        const u32 set = m.base_color_texture.set;
        const bool textured = set < p.coordinates.size() && !p.coordinates[set].empty();
        out.vertices.resize(p.vertex_count());
        for (std::size_t i = 0; i < out.vertices.size(); ++i) {
            exact_vertex& v = out.vertices[i];
            v.source = static_cast<u32>(i);
            std::copy_n(&p.positions[3 * i], 3, v.position);
            if (!p.normals.empty()) std::copy_n(&p.normals[3 * i], 3, v.normal);
            if (textured) std::copy_n(&p.coordinates[set][2 * i], 2, v.texture);
            if (!m.base_color_texture.transform.is_identity())
                m.base_color_texture.transform.apply(v.texture);
            if (!std::isfinite(v.texture[0]) || !std::isfinite(v.texture[1]))
                refuse(
                    "KHR_texture_transform of its material moves a texture coordinate out of the range of a "
                    "float");
            if (all_properties_) v.detail = materials_.detail_of(m, p, i);
        }
        out.indices = p.indices;
        out.unit_normals = p.unit_normals && !p.normals.empty();
        if (p.normals.empty()) flatten(out);
        if (m.double_sided) add_backs(out);
        return out;
    }

    /// Reserves room for the triangles. A small file can instantiate a mesh very often, so too many triangles
    /// are refused before the machine's memory is exhausted.
    template <typename T>
    void make_room(std::vector<T>& v, u64 more) const {
        const u64 needed = v.size() + more;
        if (needed <= v.capacity()) return;
        const u64 room = std::max<u64>(needed, 2 * v.capacity());
        if (room * sizeof(T) > device::available_host_bytes())
            refuse(
                "with this node, the file needs more memory than is available (a mesh counts once for each "
                "node "
                "that shows it)");
        v.reserve(room);
    }

    void append(const exact_part& p, const affine& at, u32 surface, std::vector<u32>& indices) {
        const std::size_t corners =
            mesh_.indices.size() + mesh_.materials.masked.size() + mesh_.materials.blended.size();
        if (mesh_.vertices.size() + p.vertices.size() > most || (corners + p.indices.size()) / 3 > most) {
            refuse(fmt::format(
                "with this node, the file has more than {} vertices or triangles (a mesh counts once for "
                "each node that shows it)",
                most));
        }
        make_room(mesh_.vertices, p.vertices.size());
        make_room(indices, p.indices.size());
        if (all_properties_) make_room(mesh_.materials.details, p.vertices.size());
        const u32 first = static_cast<u32>(mesh_.vertices.size());
        // Normals that have unit length are not divided by it once more, which would change their last bits.
        const bool keep_normals = p.unit_normals && at == affine{};
        const bool mirrored = at.mirrors();
        for (const auto& v : p.vertices) {
            mesh_vertex out{};
            f64 position[3], normal[3];
            at.point(v.position, position);
            at.normal(v.normal, normal);
            store_unit(normal, out.normal);
            for (std::size_t k = 0; k < 3; ++k) {
                if (keep_normals) out.normal[k] = static_cast<f32>(v.normal[k]);
                out.position[k] = static_cast<f32>(position[k]);
                if (!std::isfinite(out.position[k]))
                    refuse("its transform moves a point out of the range of a float");
            }
            out.texture[0] = v.texture[0];
            out.texture[1] = v.texture[1];
            out.surface = surface;
            mesh_.vertices.push_back(out);
            if (all_properties_) mesh_.materials.details.push_back(placed(v.detail, at, mirrored));
            if (origins_ == nullptr) continue;
            origins_->push_back({node_, origin_.primitive, origin_.instance, v.source, v.flat, v.back});
        }
        for (std::size_t t = 0; t < p.indices.size(); t += 3) {
            const u32 corner[3] = {p.indices[t], p.indices[t + (mirrored ? 2 : 1)],
                                   p.indices[t + (mirrored ? 1 : 2)]};
            for (const u32 c : corner) {
                indices.push_back(first + c);
            }
        }
    }

    /// The transform of a skin's first joint: the node of a skinned mesh does not move it.
    static affine bind_transform(const asset_skin& skin, const std::vector<affine>& world) {
        return world[skin.joints.front()].times(skin.inverse_bind.front());
    }

    const scene_asset& asset_;
    bool all_properties_ = false;
    std::vector<vertex_origin>* origins_;
    vertex_origin origin_;  ///< of the vertices that are appended next; only the primitive and the instance
    material_maker materials_;
    mesh_data mesh_;
    std::map<u32, u32> surfaces_;  ///< by the material's number
    u32 node_ = 0;                 ///< for messages
};

}  // namespace

mesh_data mesh_of_asset(const scene_asset& asset, bool all_properties, std::vector<vertex_origin>* origins) {
    try {
        mesh_data mesh = mesh_maker(asset, all_properties, origins).make();
        if (!all_properties && asset.materials.empty() && mesh.surfaces.size() == 1) mesh.surfaces.clear();
        return mesh;
    } catch (const std::bad_alloc&) {
        throw settings_error("mesh", fmt::format("{}: the mesh needs more memory than there is", asset.name));
    }
}

}  // namespace carousel::stages
