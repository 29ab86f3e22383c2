#pragma once
// `record = true` of a ring: an added stage that is not in the file reads all such rings and writes them into
// one recording (stages/recording/recorder.hpp). It is an ordinary blocking reader: each frame is recorded
// exactly once.

#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

inline constexpr const char* recorder_name = "record";

/// Adds that stage after the others if a ring requests it. Throws config_error if there are more rings than a
/// stage can read, or if a stage of that name exists.
void add_recorder(pipeline& p);

}  // namespace carousel::supervisor
