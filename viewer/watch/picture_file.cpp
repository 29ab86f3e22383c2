#include "viewer/watch/picture_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/errors.hpp"
#include "picture/png.hpp"

namespace carousel::viewer {

std::vector<std::byte> pack_picture(std::span<const u8> pixels, u32 width, u32 height) {
    const std::size_t bytes = std::size_t{width} * height * 4;
    if (bytes == 0 || pixels.size() < bytes)
        throw output_error(fmt::format("there is no picture of {} x {} pixels yet", width, height));
    return encode_png(std::as_bytes(pixels.first(bytes)), width, height);
}

void write_picture(const std::string& path, std::span<const u8> pixels, u32 width, u32 height) {
    std::vector<std::byte> bytes;
    try {
        bytes = pack_picture(pixels, width, height);
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
