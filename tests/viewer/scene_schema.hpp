#pragma once
// Parameters for tests: the shipped renderer's, which the viewer knows by their description alone, and those
// of an application that has no scene.

#include "stages/scene/scene_parameters.hpp"

namespace carousel::test {

inline ring::parameter_schema scene_schema() { return stages::scene_parameters::schema(); }

/// Two numbers, a choice, a vector: no camera, no switch.
inline ring::parameter_schema filter_schema() {
    using enum ring::parameter_kind;
    return {"app.filter",
            32,
            {{.name = "gain",
              .offset = 0,
              .initial = {1},
              .low = 0,
              .high = 10,
              .usual_low = 0,
              .usual_high = 2,
              .label = "gain",
              .unit = "x"},
             {.name = "taps", .kind = integer, .offset = 4, .initial = {3}, .low = 1, .high = 31, .step = 2},
             {.name = "mode", .kind = choice, .offset = 8, .high = 2, .choices = {"box", "gauss", "median"}},
             {.name = "center",
              .offset = 12,
              .count = 2,
              .initial = {0.5, 0.5},
              .low = -1e6,
              .high = 1e6,
              .unit = "px"}}};
}

}  // namespace carousel::test
