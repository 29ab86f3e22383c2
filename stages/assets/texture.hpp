#pragma once
// Base colour pictures for meshes: PNG and JPEG, from files or embedded in a mesh file.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

/// Location of a picture: either a separate file, or `bytes` that are a part of another file. In the second
/// case `name` identifies the picture.
struct picture {
    std::filesystem::path file;
    std::vector<std::byte> bytes;
    std::string name;
    [[nodiscard]] bool none() const noexcept { return file.empty() && bytes.empty(); }
};

struct texture_size {
    u32 width = 0, height = 0;
};

struct texture_data {
    u32 width = 0, height = 0;
    std::vector<u8> rgba;  ///< height x width x 4, sRGB, top row first; alpha 255 if the picture has none
};

inline constexpr u32 largest_texture = 8192;  ///< pixels per side

// Each function throws settings_error for `key`, with the picture, the error and a remedy.

/// Reads a PNG of any colour type and depth, or a JPEG in grey or colour. The first bytes determine the
/// format, not the name.
[[nodiscard]] texture_data load_texture(const picture& p, const std::string& key);
/// Reads only the picture's size, from its header, which is fast.
[[nodiscard]] texture_size size_of_texture(const picture& p, const std::string& key);

// One encoded picture in memory, as decoded by its library. Internal to the texture reader.

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
