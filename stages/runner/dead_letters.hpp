#pragma once
// If a frame has ended the stage's process max_attempts times, the stage's next process saves the frame
// (dead_letters/dead_letter.hpp) and then passes it on as a tombstone. That process holds the frame's inputs,
// into which no producer can write before the process commits; the stage's own code is not called for this
// frame. What a crash leaves at each step:
//   NAME.part1 made    the next incarnation finds it and retries as NAME.part2; a third one does not retry
//   files written      the same
//   renamed to NAME    the dead letter is complete; the next incarnation finds it and writes nothing
// So the attempts to save a frame end at most two processes, whatever is wrong with the disk or the device.
// The copy of each piece has the deadline of a frame (frame_timeout_ms); between two pieces no deadline runs.
// In three cases one message is logged and the frame is passed on without a dead letter: the disk is full,
// the dead letter would exceed max_dead_letter_bytes, or the stage already has max_dead_letters.

#include <carousel/stage.hpp>

#include <string>

#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

inline constexpr u64 max_dead_letter_bytes = u64{1} << 30U;
inline constexpr u32 max_dead_letters = 16;  ///< limit per stage, needed because a run's runtime directory is
                                             ///< often in memory

/// Called on the main thread before the frame's clock starts, while the device's queue contains no work of
/// the frame yet. Does not throw on file errors; device errors propagate.
void save_dead_letter(runtime& r, frame_in_work& f);

// `PROGRAM --replay FOLDER`: runs the stage of a dead letter (dead_letters/dead_letter.hpp) on its frame
// alone, in this process: no supervisor, no rings, no deadlines. Meant for debuggers and sanitizers: each
// input has its own block of memory that ends with its last plane, so that an access beyond it is detected.

/// Calls configure(), prepare(), process() and, if the stage has one, finish(). Returns exit_code::ok if all
/// of them returned. Throws the exceptions of these functions, and config_error for a dead letter that cannot
/// be read or no longer fits this program.
int replay_dead_letter(stage& s, const std::string& folder);

}  // namespace carousel::stages
