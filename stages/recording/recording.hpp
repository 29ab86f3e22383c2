#pragma once
// The description that a recording contains: its rings with their formats, the parameters' schema, and the
// offset of its times.

#include <string>
#include <vector>

#include "frame/frame_format.hpp"
#include "parameters/parameter_schema.hpp"
#include "stages/recording/mcap/scan.hpp"

namespace carousel::stages {

struct recorded_ring {
    std::string stage;
    ring::frame_format format;  ///< laid out
    [[nodiscard]] bool operator==(const recorded_ring&) const = default;
};

struct recording {
    std::string id;     ///< unique id of the recording, by which the next incarnation recognizes its own file
    i64 offset_ns = 0;  ///< difference between CLOCK_MONOTONIC and the wall clock, for the whole recording
    std::vector<recorded_ring> rings;
    ring::parameter_schema parameters;  ///< empty: the pipeline had no parameters
};

/// The channel of rings[k] is k + 1.
[[nodiscard]] mcap::preamble preamble_of(const recording& r);
/// Throws config_error that names `file` if the recording was written by another program or version, or is
/// damaged.
[[nodiscard]] recording recording_from(const mcap::preamble& p, const std::string& file);

}  // namespace carousel::stages
