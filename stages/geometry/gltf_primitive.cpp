#include "stages/geometry/gltf_primitive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "device/cpu/memfd.hpp"

namespace carousel::stages {
namespace {

template <typename T>
T load(std::span<const std::byte> bytes, u64 at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

u32 components_of(std::string_view type) {
    return type == "SCALAR" ? 1 : static_cast<u32>(type.back() - '0');
}

constexpr u64 most = u64{1} << 29U;  // limit of the kernels for the number of vertices and of triangles

enum mode : u64 { triangles = 4, strip = 5, fan = 6 };

/// The indices of the primitive's vertices, in the primitive's order.
std::vector<u32> listed(gltf_document& document, const gltf_value& primitive, u64 vertex_count) {
    std::vector<u32> out;
    if (primitive.integer_or("indices", UINT32_MAX, 0, UINT32_MAX) == UINT32_MAX) {
        for (u64 i = 0; i < vertex_count; ++i) {
            out.push_back(static_cast<u32>(i));
        }
        return out;
    }
    const gltf_accessor indices(document, primitive, "indices", {"SCALAR"});
    indices.require_indices(primitive);
    out.reserve(indices.count());
    for (u64 i = 0; i < indices.count(); ++i) {
        out.push_back(indices.index(i));
        if (out.back() >= vertex_count) {
            primitive.refuse(
                fmt::format("index {} is {}, but there are {} positions", i, out.back(), vertex_count));
        }
    }
    return out;
}

std::vector<u32> as_triangles(const std::vector<u32>& list, u64 kind, const gltf_value& primitive) {
    const u64 n = list.size();
    if (n < 3 || (kind == triangles && n % 3 != 0)) {
        primitive.refuse(fmt::format("{} corners make no {}", n,
                                     kind == triangles ? "list of triangles" : "strip or fan"));
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

/// Gives each triangle separate vertices whose normal is that of the triangle's plane.
void flatten(gltf_primitive& p) {
    std::vector<gltf_primitive::vertex> own;
    own.reserve(p.indices.size());
    for (std::size_t t = 0; t < p.indices.size(); t += 3) {
        std::array<gltf_primitive::vertex, 3> corner{};
        f64 u[3], v[3];
        for (std::size_t k = 0; k < 3; ++k) {
            corner[k] = p.vertices[p.indices[t + k]];
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

/// Reserves room for the triangles. A small file can instantiate a mesh very often, so too many triangles are
/// refused before the machine's memory is exhausted.
template <typename T>
void make_room(std::vector<T>& v, u64 more, const gltf_value& node) {
    const u64 needed = v.size() + more;
    if (needed <= v.capacity()) {
        return;
    }
    const u64 room = std::max<u64>(needed, 2 * v.capacity());
    if (room * sizeof(T) > device::available_host_bytes()) {
        node.refuse(
            "with this node, the file needs more memory than is available (a mesh counts once for each node "
            "that shows it)");
    }
    v.reserve(room);
}

void require_count(const gltf_accessor& a, u64 count, const char* key, const gltf_value& primitive) {
    if (a.count() != count) {
        primitive.refuse(fmt::format("it has {} of {}, but {} positions", a.count(), key, count));
    }
}

}  // namespace

gltf_accessor::gltf_accessor(gltf_document& document, const gltf_value& from, const char* key,
                             std::initializer_list<std::string_view> types) {
    const gltf_value a = document.referred(from, key, "accessors");
    if (a.find("sparse")) {
        a.refuse("sparse accessors are not supported; export the file without them");
    }
    const std::string type = a.text_or("type", "");
    if (std::find(types.begin(), types.end(), type) == types.end()) {
        a.refuse(fmt::format("\"type\" = \"{}\": expected {} for \"{}\"", type.substr(0, 20),
                             fmt::join(types, " or "), key));
    }
    components_ = components_of(type);
    type_ = static_cast<component>(a.integer("componentType", 5120, 5126));
    switch (type_) {
        case component::i8:
        case component::u8:
            size_ = 1;
            break;
        case component::i16:
        case component::u16:
            size_ = 2;
            break;
        case component::u32:
        case component::f32:
            size_ = 4;
            break;
        default:
            a.refuse(fmt::format("\"componentType\" = {}: there is no such type", static_cast<u64>(type_)));
    }
    normalized_ = a.flag_or("normalized", false);
    count_ = a.integer("count", 1, u64{1} << 31U);
    const gltf_value view = document.referred(a, "bufferView", "bufferViews");
    const std::span<const std::byte> whole = document.view(view);
    const u64 element = u64{size_} * components_;
    stride_ = view.integer_or("byteStride", element, 1, 252);
    if (stride_ < element) {
        view.refuse(
            fmt::format("\"byteStride\" = {} is too small: an element has {} bytes", stride_, element));
    }
    const u64 offset = a.integer_or("byteOffset", 0, 0, u64{1} << 40U);
    const u64 end = offset + stride_ * (count_ - 1) + element;
    if (end > whole.size()) {
        a.refuse(fmt::format("its {} elements end at byte {} of a buffer view of {} bytes", count_, end,
                             whole.size()));
    }
    bytes_ = whole.subspan(offset);
}

f64 gltf_accessor::value(u64 i, u32 k) const {
    const u64 at = i * stride_ + u64{k} * size_;
    switch (type_) {
        case component::i8:
            return normalized_ ? std::max(load<i8>(bytes_, at) / 127.0, -1.0) : load<i8>(bytes_, at);
        case component::u8:
            return load<u8>(bytes_, at) / (normalized_ ? 255.0 : 1.0);
        case component::i16:
            return normalized_ ? std::max(load<i16>(bytes_, at) / 32767.0, -1.0) : load<i16>(bytes_, at);
        case component::u16:
            return load<u16>(bytes_, at) / (normalized_ ? 65535.0 : 1.0);
        case component::u32:
            return load<u32>(bytes_, at);
        default:
            return load<f32>(bytes_, at);
    }
}

u32 gltf_accessor::index(u64 i) const {
    const u64 at = i * stride_;
    switch (type_) {
        case component::u8:
            return load<u8>(bytes_, at);
        case component::u16:
            return load<u16>(bytes_, at);
        default:
            return load<u32>(bytes_, at);
    }
}

void gltf_accessor::require_indices(const gltf_value& from) const {
    if (type_ != component::u8 && type_ != component::u16 && type_ != component::u32) {
        from.refuse("its indices are not whole numbers of 8, 16 or 32 bits without a sign");
    }
}

std::optional<gltf_primitive> read_primitive(gltf_document& document, const gltf_value& primitive,
                                             u64 texture_set) {
    const u64 kind = primitive.integer_or("mode", triangles, 0, 6);
    if (kind < triangles) {
        return std::nullopt;
    }
    const gltf_value attributes = primitive.member("attributes");
    const gltf_accessor positions(document, attributes, "POSITION", {"VEC3"});
    gltf_primitive p;
    p.vertices.resize(positions.count());
    const auto take = [&](const gltf_accessor& from, u64 i, u32 k, const char* key) {
        const f64 value = from.value(i, k);
        if (!std::isfinite(value)) {
            primitive.refuse(fmt::format("{} {} is not finite", key, i));
        }
        return value;
    };
    for (u64 i = 0; i < positions.count(); ++i) {
        for (u32 k = 0; k < 3; ++k) {
            p.vertices[i].position[k] = take(positions, i, k, "POSITION");
        }
    }
    const bool has_normals = attributes.has("NORMAL");
    if (has_normals) {
        const gltf_accessor normals(document, attributes, "NORMAL", {"VEC3"});
        require_count(normals, positions.count(), "NORMAL", primitive);
        for (u64 i = 0; i < positions.count(); ++i) {
            for (u32 k = 0; k < 3; ++k) {
                p.vertices[i].normal[k] = take(normals, i, k, "NORMAL");
            }
        }
    }
    const std::string key = fmt::format("TEXCOORD_{}", texture_set);
    if (attributes.has(key.c_str())) {
        const gltf_accessor coordinates(document, attributes, key.c_str(), {"VEC2"});
        require_count(coordinates, positions.count(), key.c_str(), primitive);
        for (u64 i = 0; i < positions.count(); ++i) {
            for (u32 k = 0; k < 2; ++k) {
                p.vertices[i].texture[k] = static_cast<f32>(take(coordinates, i, k, key.c_str()));
            }
        }
    }
    p.indices = as_triangles(listed(document, primitive, positions.count()), kind, primitive);
    if (!has_normals) {
        flatten(p);
    }
    return p;
}

void add_backs(gltf_primitive& p) {
    const std::size_t vertices = p.vertices.size(), corners = p.indices.size();
    p.vertices.reserve(2 * vertices);
    p.indices.reserve(2 * corners);
    for (std::size_t i = 0; i < vertices; ++i) {
        gltf_primitive::vertex back = p.vertices[i];
        for (f64& n : back.normal) n = -n;
        p.vertices.push_back(back);
    }
    for (std::size_t t = 0; t < corners; t += 3)
        for (const std::size_t k : {t, t + 2, t + 1})
            p.indices.push_back(p.indices[k] + static_cast<u32>(vertices));
}

void append(mesh_data& mesh, const gltf_primitive& p, const affine& at, u32 surface, const gltf_value& node) {
    if (mesh.vertices.size() + p.vertices.size() > most ||
        (mesh.indices.size() + p.indices.size()) / 3 > most) {
        node.refuse(fmt::format(
            "with this node, the file has more than {} vertices or triangles (a mesh counts once for "
            "each node that shows it)",
            most));
    }
    make_room(mesh.vertices, p.vertices.size(), node);
    make_room(mesh.indices, p.indices.size(), node);
    const u32 first = static_cast<u32>(mesh.vertices.size());
    for (const auto& v : p.vertices) {
        mesh_vertex out{};
        f64 position[3], normal[3];
        at.point(v.position, position);
        at.normal(v.normal, normal);
        store_unit(normal, out.normal);
        for (std::size_t k = 0; k < 3; ++k) {
            out.position[k] = static_cast<f32>(position[k]);
            if (!std::isfinite(out.position[k])) {
                node.refuse("its transform moves a point out of the range of a float");
            }
        }
        out.texture[0] = v.texture[0];
        out.texture[1] = v.texture[1];
        out.surface = surface;
        mesh.vertices.push_back(out);
    }
    const bool mirrored = at.mirrors();
    for (std::size_t t = 0; t < p.indices.size(); t += 3) {
        const u32 corner[3] = {p.indices[t], p.indices[t + (mirrored ? 2 : 1)],
                               p.indices[t + (mirrored ? 1 : 2)]};
        for (const u32 c : corner) {
            mesh.indices.push_back(first + c);
        }
    }
}

}  // namespace carousel::stages
