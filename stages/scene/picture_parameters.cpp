#include "stages/scene/picture_parameters.hpp"

#include <cstddef>

#include "parameters/parameter_union.hpp"

namespace carousel::stages {
namespace {

using kernels::material_override;

constexpr u32 in_material(std::size_t offset) {
    return static_cast<u32>(offsetof(picture_parameters, material) + offset);
}
/// Those of the scene, in the bytes of all.
ring::parameter_schema of_scene(const start_view& view) {
    ring::parameter_schema s = scene_parameters::schema(view);
    s.bytes = sizeof(picture_parameters);
    return s;
}
/// -1, the initial value: each material keeps its own.
ring::parameter replaced(const char* name, std::size_t offset) {
    return {.name = name, .offset = in_material(offset), .initial = {-1}, .low = -1, .high = 1};
}

}  // namespace

ring::parameter_schema picture_parameters::of_light(const start_view& view, f64 sun) {
    ring::parameter_schema s = of_scene(view);
    s.fields.push_back({.name = "sun",
                        .offset = offsetof(picture_parameters, sun),
                        .initial = {sun},
                        .low = 0,
                        .high = 1e4,
                        .usual_low = 0,
                        .usual_high = 10});
    s.fields.push_back({.name = "fog",
                        .offset = offsetof(picture_parameters, fog),
                        .low = 0,
                        .high = 1e6,
                        .usual_low = 0,
                        .usual_high = 100});
    s.fields.push_back({.name = "tint",
                        .offset = in_material(offsetof(material_override, tint)),
                        .count = 3,
                        .initial = {1, 1, 1},
                        .low = 0,
                        .high = 1});
    s.fields.push_back(replaced("roughness", offsetof(material_override, roughness)));
    s.fields.push_back(replaced("metallic", offsetof(material_override, metallic)));
    return s;
}

ring::parameter_schema picture_parameters::of_post(const start_view& view) {
    ring::parameter_schema s = of_scene(view);
    s.fields.push_back({.name = "bloom", .offset = offsetof(picture_parameters, bloom), .initial = {0.06}});
    s.fields.push_back({.name = "tone_map",
                        .kind = ring::parameter_kind::choice,
                        .offset = offsetof(picture_parameters, tone_map),
                        .initial = {static_cast<f64>(kernels::tone_map_name::neutral)},
                        .high = 2,
                        .label = "tone map",
                        .choices = {"linear", "neutral", "aces"}});
    return s;
}

ring::parameter_schema picture_parameters::schema(const start_view& view) {
    return ring::union_of(of_light(view, 3.0), of_post(view));
}

}  // namespace carousel::stages
