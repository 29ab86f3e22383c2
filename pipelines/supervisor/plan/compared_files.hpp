#pragma once
// Files that a stage reads, as hosts compare them before a frame flows: by size and hash.

#include <filesystem>

#include "core/json.hpp"

namespace carousel::supervisor {

/// Each file's name -> its size and hash, or "not there": of this one and of those that it names beside it,
/// buffers and images of glTF (.gltf, .glb), materials and their textures of OBJ (.obj). What can't be
/// understood is left to the stage's own error. Throws config_error: `path` is there and can't be read.
[[nodiscard]] nlohmann::json compared_files(const std::filesystem::path& path);

}  // namespace carousel::supervisor
