#include "stages/fragment/material_table.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace carousel::stages {
namespace {

struct named_material {
    const char* name;
    kernels::instance_material is;
};
/// Colours of metals: the reflectance at normal incidence in linear sRGB, rounded (physicallybased.info).
constexpr std::array<named_material, 14> table{{
    {"textured", {}},  // the mesh's own texture
    {"gold", {{1.0F, 0.77F, 0.31F}, 0.18F, 1.0F, 0.0F, 0.0F, 0}},
    {"copper", {{0.93F, 0.62F, 0.52F}, 0.28F, 1.0F, 0.0F, 0.0F, 0}},
    {"silver", {{0.96F, 0.95F, 0.92F}, 0.12F, 1.0F, 0.0F, 0.0F, 0}},
    {"chrome", {{0.55F, 0.556F, 0.554F}, 0.04F, 1.0F, 0.0F, 0.0F, 0}},
    {"brushed-steel", {{0.56F, 0.55F, 0.54F}, 0.42F, 1.0F, 0.0F, 0.0F, 0}},
    {"porcelain", {{0.78F, 0.76F, 0.71F}, 0.14F, 0.0F, 0.0F, 0.0F, 0}},
    {"rubber", {{0.028F, 0.028F, 0.031F}, 0.62F, 0.0F, 0.0F, 0.0F, 0}},
    {"clay", {{0.50F, 0.20F, 0.11F}, 0.85F, 0.0F, 0.0F, 0.0F, 0}},
    {"concrete", {{0.36F, 0.355F, 0.345F}, 0.75F, 0.0F, 0.0F, 0.0F, 0}},
    {"red-lacquer", {{0.52F, 0.018F, 0.014F}, 0.42F, 0.0F, 1.0F, 0.0F, 0}},
    {"blue-lacquer", {{0.012F, 0.07F, 0.33F}, 0.42F, 0.0F, 1.0F, 0.0F, 0}},
    {"green-lacquer", {{0.01F, 0.20F, 0.085F}, 0.42F, 0.0F, 1.0F, 0.0F, 0}},
    {"lamp", {{1.0F, 0.72F, 0.38F}, 0.6F, 0.0F, 0.0F, 6.0F, 0}},
}};

kernels::instance_material material_named(std::string_view name, const char* key) {
    std::string names;
    for (const named_material& m : table) {
        if (name == m.name) return m.is;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", m.name);
    }
    throw settings_error(key, fmt::format("\"{}\" is not a material; expected one of {}", name, names));
}

}  // namespace

kernels::surface_look appearance_from(const settings& s) {
    kernels::surface_look look;
    const std::string written = s.text("materials", "textured");
    look.material_count = 0;
    for (std::size_t at = 0; at <= written.size();) {
        const std::size_t comma = std::min(written.find(',', at), written.size());
        std::string_view name = std::string_view(written).substr(at, comma - at);
        while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
        while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
        if (look.material_count == kernels::max_instance_materials)
            throw settings_error("materials",
                                 fmt::format("more than {} materials were named; name at most that many",
                                             kernels::max_instance_materials));
        look.materials[look.material_count++] = material_named(name, "materials");
        at = comma + 1;
    }
    look.has_floor = s.has("floor") ? 1 : 0;
    look.floor = static_cast<f32>(s.number("floor", -1.0, -1e6, 1e6));
    look.floor_material = material_named(s.text("floor_material", "concrete"), "floor_material");
    look.floor_material.textured = 0;
    return look;
}

}  // namespace carousel::stages
