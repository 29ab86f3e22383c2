#pragma once
// A frame that has ended its stage's process max_attempts times is kept before it goes on void
// (run/dead_letter.hpp), by the stage's next process: it holds the frame's inputs, which no producer can
// write into before it commits, and its stage's code is not called for this frame. What a death leaves at
// each step:
//   NAME.part1 made    the next life sees it and tries once more, as NAME.part2; a third one leaves it
//   files written      the same
//   renamed to NAME    the letter is whole; the next life finds it and writes nothing
// So keeping a frame ends two processes at most, whatever is wrong with the disk or the device. Each piece
// that is copied has the deadline of a frame (frame_timeout_ms); between the pieces none runs. A full disk,
// more than most_bytes, or more than max_dead_letters of one stage: one sentence, and the frame goes on
// without a letter.

#include "stages/runner/frame_in_work.hpp"

namespace carousel::stages {

inline constexpr u64 max_dead_letter_bytes = u64{1} << 30U;
inline constexpr u32 max_dead_letters = 16;  ///< of one stage: a run's runtime directory often lies in memory

/// Main thread, before the frame's clock starts; the device's queue holds nothing of the frame yet. Throws
/// nothing that has to do with files; device errors pass.
void save_dead_letter(runtime& r, frame_in_work& f);

}  // namespace carousel::stages
