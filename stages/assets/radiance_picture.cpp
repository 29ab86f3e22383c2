// Reads Radiance RGBE files by stb_image, a single-header library. This file is compiled separately, because
// the library's functions are local to it.
#include "stages/assets/radiance_picture.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "stages/sdk/configuration.hpp"

#if CAROUSEL_WITH_STB
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_HDR
#define STBI_NO_THREAD_LOCALS
#define STBI_MAX_DIMENSIONS 16384
#include <stb/stb_image.h>
#endif

namespace carousel::stages {

radiance_picture load_radiance(const std::filesystem::path& file, const std::string& key) {
    const auto refuse = [&](std::string_view why) {
        throw settings_error(key, fmt::format("can't read the picture {}: {}", file.string(), why));
    };
#if CAROUSEL_WITH_STB
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in) refuse("it is missing or unreadable");
    const auto* const data = reinterpret_cast<const stbi_uc*>(bytes.data());
    if (bytes.size() > INT32_MAX) refuse("it has more than 2 GiB");
    const int size = static_cast<int>(bytes.size());
    if (stbi_is_hdr_from_memory(data, size) == 0)
        refuse("it is not a Radiance RGBE picture (.hdr); convert it, for example from OpenEXR");
    int width = 0, height = 0, channels = 0;
    const std::unique_ptr<f32, void (*)(void*)> pixels(
        stbi_loadf_from_memory(data, size, &width, &height, &channels, 3), stbi_image_free);
    if (pixels == nullptr) refuse(fmt::format("it is damaged ({})", stbi_failure_reason()));
    radiance_picture out{static_cast<u32>(width), static_cast<u32>(height), {}};
    out.rgb.assign(pixels.get(), pixels.get() + std::size_t{out.width} * out.height * 3);
    for (f32& x : out.rgb) x = std::isfinite(x) ? std::max(x, 0.0F) : 0.0F;
    return out;
#else
    refuse("these programs were built without stb_image; install libstb-dev and build them again");
    return {};
#endif
}

}  // namespace carousel::stages
