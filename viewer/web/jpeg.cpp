#include "viewer/web/jpeg.hpp"

#include <fmt/format.h>
#include <turbojpeg.h>

#include "core/errors.hpp"

namespace carousel::viewer::web {

jpeg_encoder::jpeg_encoder() : handle_(tjInitCompress()) {
    if (handle_ == nullptr)
        throw output_error(fmt::format("setting the JPEG encoder up: {}", tjGetErrorStr2(nullptr)));
}

jpeg_encoder::~jpeg_encoder() { tjDestroy(handle_); }

std::string jpeg_encoder::encode(std::span<const u8> rgba, u32 width, u32 height, int quality) {
    if (width == 0 || height == 0 || rgba.size() < std::size_t{width} * height * 4)
        throw output_error("there is no picture to encode as JPEG");
    std::string out(tjBufSize(static_cast<int>(width), static_cast<int>(height), TJSAMP_420), '\0');
    auto* to = reinterpret_cast<unsigned char*>(out.data());
    unsigned long bytes = out.size();
    if (tjCompress2(handle_, rgba.data(), static_cast<int>(width), 0, static_cast<int>(height), TJPF_RGBX,
                    &to, &bytes, TJSAMP_420, quality, TJFLAG_NOREALLOC) != 0)
        throw output_error(
            fmt::format("encoding a picture of {} x {} as JPEG: {}", width, height, tjGetErrorStr2(handle_)));
    out.resize(bytes);
    return out;
}

}  // namespace carousel::viewer::web
