#pragma once
// One encoded picture in memory, as decoded by its library. Internal to the texture reader.

#include <memory>
#include <span>
#include <string>

#include "stages/geometry/texture.hpp"

namespace carousel::stages {

/// Throws std::runtime_error with the library's message, which texture.cpp completes.
class texture_decoder {
public:
    virtual ~texture_decoder() = default;
    /// Reads the header.
    [[nodiscard]] virtual texture_size size() = 0;
    /// Decodes all pixels as RGBA. `size`: the result of size().
    virtual void decode(const texture_size& size, std::vector<u8>& rgba) = 0;
};

// The bytes must outlive the decoder.
[[nodiscard]] std::unique_ptr<texture_decoder> make_png_decoder(std::span<const std::byte> bytes);
[[nodiscard]] std::unique_ptr<texture_decoder> make_jpeg_decoder(std::span<const std::byte> bytes);

}  // namespace carousel::stages
