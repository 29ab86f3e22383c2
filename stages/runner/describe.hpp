#pragma once
// `carousel-NAME --describe`: reads {"stage", "width", "height", "settings", "inputs": [{"stage", "format"}]}
// from stdin and prints what the stage would write, so that wiring, formats and settings are checked before
// anything starts. Touches no device. Prints {"format": {...} or null, "slot_bytes": N, "makes": [{"name",
// "bytes"}], "uses": [...], "commits_on_host": bool, "ends": bool}, or
// {"error": {"message", "key"}} and exit code 2.

#include <carousel/stage.hpp>

namespace carousel::stages {

int describe(stage& s);

}  // namespace carousel::stages
