#pragma once
// `record = true` of a ring: a stage that the file doesn't name reads all such rings and writes them into one
// recording (stages/recording/recorder.hpp). It is a blocking reader as any other: each frame is recorded
// exactly once.

#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

inline constexpr const char* recorder_name = "record";

/// Adds that stage behind the others, if a ring asks for it. Throws config_error: more rings than a stage can
/// read, or a stage of that name.
void add_recorder(pipeline& p);

}  // namespace carousel::supervisor
