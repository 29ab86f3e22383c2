#pragma once
// Stages whose program the pipeline file does not name: ports, and the recorder of rings.

#include "spec/describe.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

// A stage with run = "port": a place for an external program, which the run does not start
// (stages/sdk/port_frames.hpp). A port with inputs reads frames, a port without inputs writes them. The file
// contains the description that the programs of other stages give themselves:
//   output = { color = "u8[720,1280,4]" }   planes that a writing port writes
//   type = "carousel.image.rgba8"           the type of its frames for readers; derived for a picture
//   ends = true                             a writing port may end its stream (writer_port::end)
//   vacant = "wait"                         without a program the pipeline waits; "skip" (reading
//                                           ports only): frames pass the port by

inline constexpr const char* port_program = "port";

/// Refuses keys that a port cannot have, and sets the keys that a port must have: one frame in flight, its
/// own GPU context. Throws config_error.
void check_port(stage_spec& s);
/// Returns the description, which is derived only from the file. Throws config_error.
[[nodiscard]] stage_description describe_port(const stage_spec& s);

// The key `record = true` of a ring: a stage that is not in the file is added. This stage reads all such
// rings and writes their frames into one recording (stages/recording/recorder.hpp). The added stage is an
// ordinary blocking reader, so each frame is recorded exactly once.

inline constexpr const char* recorder_name = "record";

/// Adds that stage after the others if a ring requests it. Throws config_error if there are more rings than a
/// stage can read, or if a stage of that name exists.
void add_recorder(pipeline& p);

}  // namespace carousel::supervisor
