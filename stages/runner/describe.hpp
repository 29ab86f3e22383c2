#pragma once
// `carousel-NAME --describe`: reads {"stage", "width", "height", "settings", "inputs": [{"stage", "format"}]}
// from stdin and prints the outputs that the stage would write, so that wiring, formats and settings are
// checked before anything starts. Opens no device. Prints {"format": {...} or null, "slot_bytes": N, "makes":
// [{"name", "bytes"}], "uses": [...], "commits_on_host": bool, "ends": bool} and further keys (describe.cpp),
// or {"error": {"message", "key"}} with exit code 2.

#include <carousel/stage.hpp>

namespace carousel::stages {

int describe(stage& s);

}  // namespace carousel::stages
