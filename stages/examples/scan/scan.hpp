#pragma once
// Shared by the two stages: the format of the frames from the source to the sink, and the parameters that can
// be set during a run.

#include <carousel/stage.hpp>

/// Points in metres, each with the strength of its echo. If the number of points is 0, the format matches any
/// number of points (for require_format).
inline carousel::frame_format scan_format(carousel::u64 points) {
    return {
        "example.scan",
        {{"points", carousel::element::f32_, {points, 3}}, {"intensity", carousel::element::u16_, {points}}},
        {}};
}

/// `carousel set range=8` changes this parameter from one frame on; the dashboard and the viewer have a
/// control for it.
struct scan_parameters {
    carousel::f32 range = 5;
    static constexpr const char* type = "example.scan";
    static carousel::parameter_schema schema() {
        return {.type = type,
                .bytes = sizeof(scan_parameters),
                .fields = {{.name = "range",
                            .initial = {5},
                            .low = 0.5,
                            .high = 100,
                            .usual_low = 0.5,
                            .usual_high = 20,
                            .unit = "m"}}};
    }
};
