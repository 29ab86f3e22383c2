#include "stages/geometry/obj_material.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "core/io.hpp"
#include "core/log.hpp"
#include "kernels/body/srgb.hpp"

namespace carousel::stages {

bool obj_material_reader::operator()(const std::string& name, std::vector<tinyobj::material_t>* materials,
                                     std::map<std::string, int>* numbers, std::string* warning,
                                     std::string* problem) {
    const std::optional<std::string> text = read_file((folder_ / name).string());
    if (!text) {
        *warning += fmt::format("can't read the material library {}: its colours are not shown\n",
                                (folder_ / name).string());
        return false;
    }
    std::istringstream lines(*text);
    std::string with_colours;
    for (std::string line; std::getline(lines, line);) {
        with_colours += line + "\n";
        const auto first = line.find_first_not_of(" \t");
        if (first != std::string::npos && line.compare(first, 6, "newmtl") == 0) with_colours += "Kd 1 1 1\n";
    }
    std::istringstream stream(with_colours);
    tinyobj::LoadMtl(numbers, materials, &stream, warning, problem);
    return true;
}

surface surface_of(const tinyobj::material_t& m, const std::filesystem::path& folder) {
    surface out;
    if (!m.diffuse_texname.empty()) {
        std::string name = m.diffuse_texname;
        std::replace(name.begin(), name.end(), '\\', '/');
        out.image.file = folder / name;
    }
    const bool black =
        std::all_of(std::begin(m.diffuse), std::end(m.diffuse), [](f32 c) { return !(c > 0); });
    if (black && !out.image.none()) return out;
    for (std::size_t k = 0; k < 3; ++k)
        out.factor[k] = static_cast<f32>(
            kernels::body::srgb_to_linear(std::clamp(static_cast<f64>(m.diffuse[k]), 0.0, 1.0)));
    return out;
}

void warn_of_hidden_properties(const std::vector<tinyobj::material_t>& materials, const std::string& file) {
    const auto warn = [&](auto&& has, const char* what) {
        if (std::any_of(materials.begin(), materials.end(), has)) log::warning("{}: {}", file, what);
    };
    using material = tinyobj::material_t;
    warn([](const material& m) { return !m.bump_texname.empty() || !m.normal_texname.empty(); },
         "normal and bump maps are not shown");
    warn([](const material& m) { return !m.metallic_texname.empty() || !m.roughness_texname.empty(); },
         "metallic and roughness maps are not shown");
    warn([](const material& m) { return !m.specular_texname.empty() || !m.reflection_texname.empty(); },
         "specular and reflection maps are not shown");
    warn([](const material& m) { return !m.emissive_texname.empty(); }, "emissive maps are not shown");
    warn([](const material& m) { return m.dissolve < 1 || !m.alpha_texname.empty(); },
         "transparent materials are drawn opaque");
}

}  // namespace carousel::stages
