#pragma once
// What a process has to say of the frame that ends it, for those who look at the frame later: a traceback,
// say.
//
//   RUN/dead-letters/traceback-STAGE-SEQUENCE.txt    written by the process that ends
//   RUN/dead-letters/STAGE-SEQUENCE/traceback.txt    put there by the next one, with the frame
//   (dead_letter.hpp)
//
// A frame that succeeds at another attempt leaves the first file; there are at most most_tracebacks of them.

#include <string>
#include <string_view>

#include "core/types.hpp"

namespace carousel::run {

inline constexpr u32 most_tracebacks = 64;

/// Throws output_error.
void keep_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& text);
/// Moves it into the letter's folder, if there is one.
void move_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& dead_letter_folder) noexcept;

}  // namespace carousel::run
