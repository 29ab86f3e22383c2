#pragma once
// `carousel mesh-info`: what a scene file contains, its sizes, and which features pictures show.

#include <filesystem>
#include <string>

#include "core/json.hpp"

namespace carousel::supervisor {

/// Reads a file. Throws config_error if it cannot be read as a scene. Keys: "file", "nodes", "meshes",
/// "primitives", "triangles", "vertices", "materials", "textures", "skins", "morph_targets", "animations",
/// "cameras", "lights", "instances"; "low" and "high", the corners of a box around the boxes of
/// all primitives, in the file's units;
/// "images", each with "name" and either "width" and "height" or "error"; "features", each with "feature",
/// "count", "shown" and "text".
[[nodiscard]] nlohmann::json mesh_info(const std::filesystem::path& file);

/// The same as a text for people.
[[nodiscard]] std::string mesh_info_text(const nlohmann::json& info);

}  // namespace carousel::supervisor
