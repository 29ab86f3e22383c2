#pragma once
// `PROGRAM --replay FOLDER`: runs the stage of a dead letter (dead_letters/dead_letter.hpp) on its frame
// alone, in this process: no supervisor, no rings, no deadlines. Meant for debuggers and sanitizers: each
// input has its own block of memory that ends with its last plane, so that an access beyond it is detected.

#include <string>

#include <carousel/stage.hpp>

namespace carousel::stages {

/// Calls configure(), prepare(), process() and, if the stage has one, finish(). Returns exit_code::ok if all
/// of them returned. Throws the exceptions of these functions, and config_error for a dead letter that cannot
/// be read or no longer fits this program.
int replay_dead_letter(stage& s, const std::string& folder);

}  // namespace carousel::stages
