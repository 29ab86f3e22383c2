#pragma once
// Encodes JPEG pictures for the stream, with libjpeg-turbo. Use each object from one thread only.

#include <span>
#include <string>

#include "core/types.hpp"

namespace carousel::viewer::web {

class jpeg_encoder {
public:
    jpeg_encoder();  ///< throws output_error
    ~jpeg_encoder();
    jpeg_encoder(const jpeg_encoder&) = delete;
    jpeg_encoder& operator=(const jpeg_encoder&) = delete;

    /// RGBA8, dense, top row first; alpha is dropped. `quality` 1..100. Throws output_error.
    [[nodiscard]] std::string encode(std::span<const u8> rgba, u32 width, u32 height, int quality);

private:
    void* handle_;
};

}  // namespace carousel::viewer::web
