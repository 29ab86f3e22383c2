#pragma once
// Text that a process leaves about the frame that ends the process, such as a traceback, for a later analysis
// of the frame.
//
//   RUN/dead-letters/traceback-STAGE-SEQUENCE.txt    written by the process that ends
//   RUN/dead-letters/STAGE-SEQUENCE/traceback.txt    moved there by the next process, which saves the frame
//                                                    (dead_letter.hpp)
//
// A frame that succeeds at another attempt leaves the first file; there are at most most_tracebacks such
// files.

#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::run {

inline constexpr u32 most_tracebacks = 64;

/// Writes the text. Does nothing if there are already most_tracebacks files. Throws output_error.
void keep_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& text);
/// Moves the text, if there is one, into the dead letter's folder.
void move_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& dead_letter_folder) noexcept;

}  // namespace carousel::run
