#pragma once
// A stage with run = "port": a place for an external program, which the run does not start
// (stages/sdk/port_frames.hpp). With inputs it reads, without it writes. The file has what other stages'
// programs describe themselves:
//   output = { color = "u8[720,1280,4]" }   planes that a writing port writes
//   type = "carousel.image.rgba8"           the type of its frames for readers; derived for a picture
//   ends = true                             a writing port may end its stream (writer_port::end)
//   vacant = "wait"                         without a program the pipeline waits; "skip" (reading
//                                           ports only): frames pass the port by

#include "spec/describe.hpp"

namespace carousel::supervisor {

inline constexpr const char* port_program = "port";

/// Refuses keys that a port cannot have, and sets those that it must have: one frame in flight, a GPU context
/// of its own. Throws config_error.
void check_port(stage_spec& s);
/// The description from the file alone. Throws config_error.
[[nodiscard]] stage_description describe_port(const stage_spec& s);

}  // namespace carousel::supervisor
