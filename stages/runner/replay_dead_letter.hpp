#pragma once
// `PROGRAM --replay FOLDER`: the stage of a dead letter (run/dead_letter.hpp) on its frame alone, in this
// process: no supervisor, no rings, no deadlines. Made for debuggers and sanitizers: each input has a block
// of memory of its own that ends with its last plane, so that a step beyond it is seen.

#include <string>

#include <carousel/stage.hpp>

namespace carousel::stages {

/// configure(), prepare(), process() and, where the stage has one, finish(). Returns exit_code::ok when all
/// of them came back. Throws what they throw; config_error for a letter that can't be read, or that this
/// program no longer fits.
int replay_dead_letter(stage& s, const std::string& folder);

}  // namespace carousel::stages
