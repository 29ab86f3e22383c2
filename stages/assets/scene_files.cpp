#include "stages/assets/scene_files.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

const std::vector<std::string>& scene_file_extensions() {
    static const std::vector<std::string> all = {".obj", ".gltf", ".glb", ".ply"};
    return all;
}

scene_asset read_scene_file(const std::filesystem::path& path, bool base_colors_only) {
    std::string extension = path.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (extension == ".gltf" || extension == ".glb") return read_gltf(path, std::nullopt, base_colors_only);
    if (extension == ".ply") return read_ply(path);
    std::error_code failed;
    if (extension != ".obj" && std::filesystem::exists(path, failed)) {
        throw settings_error("mesh",
                             fmt::format("{}: meshes are read from Wavefront OBJ (.obj), glTF 2.0 (.gltf, "
                                         ".glb) and PLY files (.ply) only; convert it",
                                         path.string()));
    }
    return read_obj(path);
}

}  // namespace carousel::stages
