#pragma once
// The loop of a stage that reads its one input as a `latest` group: it takes the newest frame, skips what it
// has no time for and never holds anybody up. What it read counts only if its lease was not revoked
// meanwhile, so finish() comes behind the release.

#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

/// Runs until every frame of the run has passed.
void run_latest(runtime& r, stage& s);

}  // namespace carousel::stages
