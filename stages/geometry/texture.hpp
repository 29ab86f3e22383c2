#pragma once
// Base colour pictures for meshes.

#include <filesystem>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

struct texture_data {
    u32 width = 0, height = 0;
    std::vector<u8> rgba;  ///< height x width x 4, sRGB, top row first
};

inline constexpr u32 largest_texture = 8192;  ///< pixels a side

/// Reads a PNG of any colour type. Throws settings_error for `key`: file, what is wrong, what to do.
[[nodiscard]] texture_data load_png_texture(const std::filesystem::path& path, const std::string& key);
/// Its size alone, from the header: quick. Throws the same for files that are no PNG.
struct texture_size {
    u32 width = 0, height = 0;
};
[[nodiscard]] texture_size png_size(const std::filesystem::path& path, const std::string& key);

}  // namespace carousel::stages
