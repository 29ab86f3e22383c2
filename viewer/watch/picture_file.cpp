#include "viewer/watch/picture_file.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/output_file.hpp"
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
    if (const int failed = write_output_file(path, {bytes}); failed != 0)
        throw output_error(fmt::format("writing {}: {}", path,
                                       output_cause(failed, "choose a file in a folder that you own")));
}

}  // namespace carousel::viewer
