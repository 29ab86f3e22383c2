#pragma once
// Files that a stage reads. Hosts compare them by size and hash before any frame is sent.

#include <filesystem>

#include "core/json.hpp"

namespace carousel::supervisor {

/// Returns name -> size and hash, or "not there", of the file and of the files that it names: buffers and
/// images of glTF (.gltf, .glb), materials and their textures of OBJ (.obj). Content that cannot be parsed is
/// left to the stage, which reports the error. Throws config_error if `path` exists and cannot be read.
[[nodiscard]] nlohmann::json compared_files(const std::filesystem::path& path);

}  // namespace carousel::supervisor
