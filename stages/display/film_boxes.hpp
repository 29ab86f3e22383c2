#pragma once
// A film's file as a row of boxes (ISO/IEC 14496-12): a heading (ftyp, moov), then for each frame a fragment
// (moof, mdat). A fragment's decode time (tfdt) is its frame's sequence times film_ticks: thereby the file
// itself tells which frames it holds, also after its writer was killed in mid-write.

#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

inline constexpr u64 film_ticks = 1000;  ///< of the film's time scale, a frame

/// Up to the first fragment, or to the file's end. Throws output_error.
[[nodiscard]] u64 heading_bytes_of(int fd);

/// What a killed writer has left behind the heading.
struct film_contents {
    u64 bytes = 0;            ///< up to the end of the last whole fragment
    std::optional<u64> last;  ///< the highest frame; nothing: none yet
    u64 frames = 0;
};
/// Reads from `heading_bytes` on to the first fragment that is not whole. Throws output_error when the file
/// can't be read.
[[nodiscard]] film_contents read_film(int fd, u64 heading_bytes);

/// Stamps one fragment with its frame's number, whatever its muxer has put there. False: this is no fragment
/// of one frame.
[[nodiscard]] bool stamp_fragment(std::span<u8> fragment, u64 frame_number) noexcept;

}  // namespace carousel::stages
