#pragma once
// One encoded picture in memory as its library sees it. Internal to the reading of textures.

#include <memory>
#include <span>
#include <string>

#include "stages/geometry/texture.hpp"

namespace carousel::stages {

/// Throws std::runtime_error with the library's words, which texture.cpp puts into a sentence.
class texture_decoder {
public:
    virtual ~texture_decoder() = default;
    /// From the header.
    [[nodiscard]] virtual texture_size size() = 0;
    /// All pixels, RGBA; `size` is what size() gave.
    virtual void decode(const texture_size& size, std::vector<u8>& rgba) = 0;
};

// The bytes must outlive the decoder.
[[nodiscard]] std::unique_ptr<texture_decoder> make_png_decoder(std::span<const std::byte> bytes);
[[nodiscard]] std::unique_ptr<texture_decoder> make_jpeg_decoder(std::span<const std::byte> bytes);

}  // namespace carousel::stages
