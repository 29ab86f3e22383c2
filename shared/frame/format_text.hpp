#pragma once
// The text form of a plane: "u8[720,1280,4]", an element type and its extents, the slowest first. Pipeline
// files use it to declare what a port writes, and programs to declare what they expect.

#include "frame/frame_format.hpp"

namespace carousel::ring {

/// Throws config_error, which quotes `text` and states what is expected.
[[nodiscard]] plane plane_from_text(const std::string& name, std::string_view text);

}  // namespace carousel::ring
