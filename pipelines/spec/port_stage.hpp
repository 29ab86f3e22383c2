#pragma once
// A stage with run = "port": a place for an external program, which the run does not start
// (stages/sdk/port_frames.hpp). A port with inputs reads frames, a port without inputs writes them. The file
// contains the description
// that the programs of other stages give themselves: output = { color = "u8[720,1280,4]" }   planes that a
// writing port writes
//   type = "carousel.image.rgba8"           the type of its frames for readers; derived for a picture
//   ends = true                             a writing port may end its stream (writer_port::end)
//   vacant = "wait"                         without a program the pipeline waits; "skip" (reading
//                                           ports only): frames pass the port by

#include "spec/describe.hpp"

namespace carousel::supervisor {

inline constexpr const char* port_program = "port";

/// Refuses keys that a port cannot have, and sets those that it must have: one frame in flight, its own GPU
/// context. Throws config_error.
void check_port(stage_spec& s);
/// Returns the description, which is derived only from the file. Throws config_error.
[[nodiscard]] stage_description describe_port(const stage_spec& s);

}  // namespace carousel::supervisor
