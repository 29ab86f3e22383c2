#pragma once
// The data of a frame in addition to its picture, as text: its metadata, the used part of its planes, the
// frames of the sampled inputs with which it was made, and the time since its capture.

#include <string>
#include <utility>
#include <vector>

#include "session/newest_frame.hpp"

namespace carousel::viewer {

/// Names and values, in the order in which the stages set them.
using carried_facts = std::vector<std::pair<std::string, std::string>>;

/// Lists what `frame` carries. `now`: CLOCK_MONOTONIC, in ns. The age is left out if the capture time comes
/// from a recording.
[[nodiscard]] carried_facts carried_by(const carousel::session::newest_frame::about& frame,
                                       const ring::frame_format& format, u64 now);
/// The facts on one line: "exposure_ms 3.5 · camera "left""; "" if there are none.
[[nodiscard]] std::string line_of(const carried_facts& facts);

}  // namespace carousel::viewer
