#pragma once
// A stage with run = "port": a place for a program that nobody here starts (stages/sdk/port_frames.hpp). With
// inputs it reads, without it writes. What other stages' programs would say of themselves the file says:
//   output = { color = "u8[720,1280,4]" }   what a writing one writes, a plane each
//   type = "carousel.image.rgba8"           what its readers call that; derived where it is a picture
//   ends = true                             a writing one may end its stream (writer_port::end)
//   vacant = "wait"                         while nobody has it, the pipeline waits; "skip", of a reading
//   one:
//                                           frames pass it by

#include "spec/describe.hpp"

namespace carousel::supervisor {

inline constexpr const char* port_program = "port";

/// Refuses what a port can't be, and gives it what it must have: one frame in hand, a GPU context of its own.
/// Throws config_error.
void check_port(stage_spec& s);
/// From the file alone. Throws config_error.
[[nodiscard]] stage_description describe_port(const stage_spec& s);

}  // namespace carousel::supervisor
