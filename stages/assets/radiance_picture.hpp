#pragma once
// Pictures with a large range, as light from all directions: Radiance RGBE files (.hdr).

#include <filesystem>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

/// Linear light from all directions, equirectangular: the top row is the direction +y, the middle column -z,
/// and the column at three quarters +x.
struct radiance_picture {
    u32 width = 0, height = 0;
    std::vector<f32> rgb;  ///< height x width x 3, finite and not negative
};

inline constexpr u32 largest_radiance_side = 16384;

/// Reads a .hdr file. Throws settings_error for `key`, also if the programs were built without the reader.
[[nodiscard]] radiance_picture load_radiance(const std::filesystem::path& file, const std::string& key);

}  // namespace carousel::stages
