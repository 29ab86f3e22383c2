#include "stages/assets/gltf_compression.hpp"

#include <fmt/format.h>

#if CAROUSEL_WITH_MESHOPT
#include <meshoptimizer.h>
#endif

namespace carousel::stages::gltf_compression {

const char* missing_library(std::string_view extension) noexcept {
    if (extension == "EXT_meshopt_compression" && !has_meshopt) return "libmeshoptimizer-dev";
    if (extension == "KHR_draco_mesh_compression" && !has_draco) return "libdraco-dev";
    return nullptr;
}

#if CAROUSEL_WITH_MESHOPT

std::vector<std::byte> decompress_view(const gltf_value& part, std::span<const std::byte> bytes) {
    const u64 count = part.integer("count", 1, u64{1} << 31U);
    const u64 stride = part.integer("byteStride", 1, 256);
    const std::string mode = part.text_or("mode", ""), filter = part.text_or("filter", "NONE");
    if (count * stride > most_decompressed)
        part.refuse(fmt::format("{} elements of {} bytes exceed {} bytes", count, stride, most_decompressed));
    std::vector<std::byte> out(count * stride);
    const auto* const from = reinterpret_cast<const unsigned char*>(bytes.data());
    int failed = -1;
    if (mode == "ATTRIBUTES") {
        if (stride % 4 != 0)
            part.refuse(fmt::format("\"byteStride\" = {}: expected a multiple of 4", stride));
        failed = meshopt_decodeVertexBuffer(out.data(), count, stride, from, bytes.size());
    } else if (mode == "TRIANGLES" || mode == "INDICES") {
        if (stride != 2 && stride != 4)
            part.refuse(fmt::format("\"byteStride\" = {}: expected 2 or 4", stride));
        if (mode == "TRIANGLES" && count % 3 != 0)
            part.refuse(fmt::format("{} indices make no triangles", count));
        failed = mode == "TRIANGLES"
                     ? meshopt_decodeIndexBuffer(out.data(), count, stride, from, bytes.size())
                     : meshopt_decodeIndexSequence(out.data(), count, stride, from, bytes.size());
    } else {
        part.refuse(
            fmt::format("\"mode\" = \"{}\": expected ATTRIBUTES, TRIANGLES or INDICES", mode.substr(0, 20)));
    }
    if (failed != 0)
        part.refuse(fmt::format("its compressed bytes are damaged (libmeshoptimizer: {})", failed));
    if (filter == "OCTAHEDRAL") {
        if (stride != 4 && stride != 8) part.refuse("the filter OCTAHEDRAL needs a \"byteStride\" of 4 or 8");
        meshopt_decodeFilterOct(out.data(), count, stride);
    } else if (filter == "QUATERNION") {
        if (stride != 8) part.refuse("the filter QUATERNION needs a \"byteStride\" of 8");
        meshopt_decodeFilterQuat(out.data(), count, stride);
    } else if (filter == "EXPONENTIAL") {
        if (stride % 4 != 0)
            part.refuse("the filter EXPONENTIAL needs a \"byteStride\" that is a multiple of 4");
        meshopt_decodeFilterExp(out.data(), count, stride);
    } else if (filter != "NONE") {
        part.refuse(fmt::format("\"filter\" = \"{}\": there is no such filter", filter.substr(0, 20)));
    }
    return out;
}

#else

std::vector<std::byte> decompress_view(const gltf_value& part, std::span<const std::byte>) {
    part.refuse("these programs were built without libmeshoptimizer-dev, which decompresses it");
}

#endif

}  // namespace carousel::stages::gltf_compression
