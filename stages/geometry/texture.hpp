#pragma once
// Base colour pictures for meshes: PNG and JPEG, from files or from within a mesh file.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

/// Where a picture lies: in a file, or in `bytes`, which came from within the file that `name` tells of.
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
    std::vector<u8> rgba;  ///< height x width x 4, sRGB, top row first; alpha 255 where the picture has none
};

inline constexpr u32 largest_texture = 8192;  ///< pixels a side

// Each throws settings_error for `key`: which picture, what is wrong with it, what to do.

/// Reads a PNG of any colour type and depth, or a JPEG in grey or colour. What it is, is told by its first
/// bytes, not by its name.
[[nodiscard]] texture_data load_texture(const picture& p, const std::string& key);
/// Its size alone, from the header: quick.
[[nodiscard]] texture_size size_of_texture(const picture& p, const std::string& key);

}  // namespace carousel::stages
