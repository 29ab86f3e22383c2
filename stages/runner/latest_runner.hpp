#pragma once
// Main loop of a stage that reads its only input as a `latest` group: it takes the newest frame, skips frames
// that it has no time for and never blocks another process. The data that it read is valid only if its lease
// was not revoked in the meantime, so finish() is called after the release.

#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

/// Runs until every frame of the run has passed.
void run_latest(runtime& r, stage& s);

}  // namespace carousel::stages
