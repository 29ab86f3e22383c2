// Meshes that Draco has compressed. A file of its own, because the library's headers are large.
#include "stages/assets/gltf_compression.hpp"

#include <fmt/format.h>

#if CAROUSEL_WITH_DRACO
#include <draco/compression/decode.h>
#include <draco/core/decoder_buffer.h>
#include <draco/mesh/mesh.h>
#endif

namespace carousel::stages::gltf_compression {

#if CAROUSEL_WITH_DRACO

draco_mesh decompress_draco(const gltf_value& part, std::span<const std::byte> bytes,
                            const std::vector<std::string>& wanted,
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
    for (u32 f = 0; f < mesh->num_faces(); ++f) {
        for (const draco::PointIndex& corner : mesh->face(draco::FaceIndex(f))) {
            if (corner.value() >= out.vertex_count)
                part.refuse("a compressed triangle names a missing vertex");
            out.indices.push_back(corner.value());
        }
    }
    const gltf_value numbers = part.member("attributes");
    for (const std::string& name : wanted) {
        attributes.emplace_back();
        if (!numbers.has(name.c_str())) continue;
        const u64 id = numbers.integer(name.c_str(), 0, UINT32_MAX);
        const draco::PointAttribute* const from = mesh->GetAttributeByUniqueId(static_cast<u32>(id));
        if (from == nullptr)
            numbers.refuse(
                fmt::format("\"{}\" names attribute {}, which the compressed mesh lacks", name, id));
        draco_attribute& to = attributes.back();
        to.components = static_cast<u32>(from->num_components());
        if (to.components < 1 || to.components > 4)
            numbers.refuse(fmt::format("\"{}\" has {} components", name, to.components));
        to.values.resize(out.vertex_count * to.components);
        for (u32 i = 0; i < out.vertex_count; ++i)
            if (!from->ConvertValue<float>(from->mapped_index(draco::PointIndex(i)),
                                           static_cast<i8>(to.components),
                                           &to.values[u64{i} * to.components]))
                numbers.refuse(fmt::format("\"{}\" has values of a kind that is not supported", name));
    }
    return out;
}

#else

draco_mesh decompress_draco(const gltf_value& part, std::span<const std::byte>,
                            const std::vector<std::string>&, std::vector<draco_attribute>&) {
    part.refuse("these programs were built without libdraco-dev, which decompresses it");
}

#endif

}  // namespace carousel::stages::gltf_compression
