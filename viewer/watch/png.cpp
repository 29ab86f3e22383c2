#include "viewer/watch/png.hpp"

#include <fmt/format.h>
#include <spng.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/errors.hpp"

namespace carousel::viewer {

std::vector<u8> encode_png(std::span<const u8> pixels, u32 width, u32 height) {
    if (width == 0 || height == 0 || pixels.size() < std::size_t{width} * height * 4)
        throw output_error(fmt::format("there is no picture of {} x {} pixels yet", width, height));
    const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
    spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_option(png.get(), SPNG_IMG_COMPRESSION_LEVEL, 4);
    spng_ihdr header{};
    header.width = width;
    header.height = height;
    header.bit_depth = 8;
    header.color_type = SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    spng_set_ihdr(png.get(), &header);
    int failed = spng_encode_image(png.get(), pixels.data(), std::size_t{width} * height * 4, SPNG_FMT_PNG,
                                   SPNG_ENCODE_FINALIZE);
    std::size_t size = 0;
    const std::unique_ptr<void, void (*)(void*)> bytes(
        failed == 0 ? spng_get_png_buffer(png.get(), &size, &failed) : nullptr, std::free);
    if (failed != 0 || !bytes)
        throw output_error(fmt::format("packing the picture failed: {}", spng_strerror(failed)));
    const auto* first = static_cast<const u8*>(bytes.get());
    return {first, first + size};
}

void write_png(const std::string& path, std::span<const u8> pixels, u32 width, u32 height) {
    std::vector<u8> bytes;
    try {
        bytes = encode_png(pixels, width, height);
    } catch (const output_error& e) {
        throw output_error(fmt::format("writing {}: {}", path, e.what()));
    }
    const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    std::FILE* f = std::fopen(temporary.c_str(), "wb");
    if (f == nullptr)
        throw output_error(
            fmt::format("writing {}: {}: is the folder there and writable?", path, errno_text(errno)));
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size();
    const bool closed = std::fclose(f) == 0;
    if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
        const int why = errno;
        ::unlink(temporary.c_str());
        throw output_error(fmt::format("writing {}: {}", path, errno_text(why)));
    }
}

}  // namespace carousel::viewer
