#pragma once
// Material libraries (.mtl) of OBJ files. Internal to the OBJ reader.

#include <filesystem>
#include <vector>

#include <tiny_obj_loader.h>

#include "stages/geometry/mesh_data.hpp"

namespace carousel::stages {

/// Reads the library that `mtllib` names, from `folder`. A material without Kd gets 1 1 1, so that a picture
/// (map_Kd) keeps its colours.
class obj_material_reader : public tinyobj::MaterialReader {
public:
    explicit obj_material_reader(std::filesystem::path folder) : folder_(std::move(folder)) {}
    bool operator()(const std::string& name, std::vector<tinyobj::material_t>* materials,
                    std::map<std::string, int>* numbers, std::string* warning, std::string* problem) override;

private:
    std::filesystem::path folder_;
};

/// The appearance of a material: its picture (map_Kd), multiplied by its colour (Kd, in sRGB). A black colour
/// together with a picture means that the exporter has omitted the colour.
[[nodiscard]] surface surface_of(const tinyobj::material_t& m, const std::filesystem::path& folder);

/// Logs one warning for each kind of property that the materials have and pictures do not show.
void warn_of_hidden_properties(const std::vector<tinyobj::material_t>& materials, const std::string& file);

}  // namespace carousel::stages
