#pragma once
// What a frame carries beside its picture, as people read it: its metadata, what of its planes is in use,
// with which frames of its maker's sampled inputs it was made, how long ago it was captured.

#include <string>
#include <utility>
#include <vector>

#include "run/newest_frame.hpp"

namespace carousel::viewer {

/// Names and values, in the order in which the stages have set them.
using carried_facts = std::vector<std::pair<std::string, std::string>>;

/// `now`: CLOCK_MONOTONIC. A capture time of a recording tells no age.
[[nodiscard]] carried_facts carried_by(const run::newest_frame::about& frame,
                                       const ring::frame_format& format, u64 now);
/// "exposure_ms 3.5 · camera "left"": on one line; "": it carries nothing.
[[nodiscard]] std::string line_of(const carried_facts& facts);

}  // namespace carousel::viewer
