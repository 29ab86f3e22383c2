// Meshes that Draco has compressed. A file of its own, because the library's headers are large.
#include "stages/assets/gltf_compression.hpp"

#include <algorithm>

#include <fmt/format.h>

#if CAROUSEL_WITH_DRACO
#include <draco/compression/decode.h>
#include <draco/core/decoder_buffer.h>
#include <draco/mesh/mesh.h>
#endif

namespace carousel::stages::gltf_compression {

#if CAROUSEL_WITH_DRACO

namespace {

/// The value that a component has by the accessor's type. Draco's own flag for normalized integers is not
/// used: exporters do not set it.
f32 meaning_of(f32 stored, const draco_request& as) {
    if (!as.normalized) return stored;
    switch (as.component_type) {
        case 5120:
            return std::max(stored / 127, -1.0F);
        case 5121:
            return stored / 255;
        case 5122:
            return std::max(stored / 32767, -1.0F);
        case 5123:
            return stored / 65535;
        default:
            return stored;
    }
}

}  // namespace

draco_mesh decompress_draco(gltf_document& document, const gltf_value& part, std::span<const std::byte> bytes,
                            const std::vector<draco_request>& wanted,
                            std::vector<draco_attribute>& attributes) {
    draco::DecoderBuffer buffer;
    buffer.Init(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    draco::Decoder decoder;
    auto decoded = decoder.DecodeMeshFromBuffer(&buffer);
    if (!decoded.ok())
        part.refuse(fmt::format("its compressed bytes are damaged (libdraco: {})",
                                decoded.status().error_msg_string()));
    const std::unique_ptr<draco::Mesh> mesh = std::move(decoded).value();
    draco_mesh out;
    out.vertex_count = mesh->num_points();
    document.charge(part.place(), u64{mesh->num_faces()} * 3 * sizeof(u32));
    for (u32 f = 0; f < mesh->num_faces(); ++f) {
        for (const draco::PointIndex& corner : mesh->face(draco::FaceIndex(f))) {
            if (corner.value() >= out.vertex_count)
                part.refuse("a compressed triangle names a missing vertex");
            out.indices.push_back(corner.value());
        }
    }
    const gltf_value numbers = part.member("attributes");
    for (const draco_request& request : wanted) {
        const std::string& name = request.name;
        attributes.emplace_back();
        if (!numbers.has(name.c_str())) continue;
        const u64 id = numbers.integer(name.c_str(), 0, UINT32_MAX);
        const i32 place = mesh->GetAttributeIdByUniqueId(static_cast<u32>(id));
        if (place < 0)
            numbers.refuse(
                fmt::format("\"{}\" names attribute {}, which the compressed mesh lacks", name, id));
        draco::PointAttribute* const from = mesh->attribute(place);
        from->set_normalized(false);
        draco_attribute& to = attributes.back();
        to.components = static_cast<u32>(from->num_components());
        if (to.components < 1 || to.components > 4)
            numbers.refuse(fmt::format("\"{}\" has {} components", name, to.components));
        document.charge(part.place(), out.vertex_count * to.components * sizeof(f32));
        to.values.resize(out.vertex_count * to.components);
        for (u32 i = 0; i < out.vertex_count; ++i)
            if (!from->ConvertValue<float>(from->mapped_index(draco::PointIndex(i)),
                                           static_cast<i8>(to.components),
                                           &to.values[u64{i} * to.components]))
                numbers.refuse(fmt::format("\"{}\" has values of a kind that is not supported", name));
        for (f32& x : to.values) x = meaning_of(x, request);
    }
    return out;
}

#else

draco_mesh decompress_draco(gltf_document&, const gltf_value& part, std::span<const std::byte>,
                            const std::vector<draco_request>&, std::vector<draco_attribute>&) {
    part.refuse("these programs were built without libdraco-dev, which decompresses it");
}

#endif

}  // namespace carousel::stages::gltf_compression
