#pragma once
// A plane as people write it: "u8[720,1280,4]", an element type and its extents, the slowest first. Pipeline
// files say so what a port writes, and programs what they count on.

#include "ring/frame_format.hpp"

namespace carousel::ring {

/// Throws config_error: what was written, and what is expected.
[[nodiscard]] plane plane_from_text(const std::string& name, std::string_view text);

}  // namespace carousel::ring
