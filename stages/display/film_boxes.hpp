#pragma once
// A film's file as a sequence of boxes (ISO/IEC 14496-12): a heading (ftyp, moov), then one fragment (moof,
// mdat) per frame. A fragment's decode time (tfdt) is its frame number times film_ticks, so the file itself
// shows which frames it contains, even after its writer was killed during a write.

#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages {

inline constexpr u64 film_ticks = 1000;  ///< per frame, in the film's time scale

/// Returns the number of bytes up to the first fragment, or to the end of the file. Throws output_error.
[[nodiscard]] u64 heading_bytes_of(int fd);

/// The data that a killed writer has left after the heading.
struct film_contents {
    u64 bytes = 0;            ///< up to the end of the last complete fragment
    std::optional<u64> last;  ///< the highest frame in the file; empty: none yet
    u64 frames = 0;
};
/// Reads from `heading_bytes` to the first incomplete fragment. Throws output_error if the file cannot be
/// read.
[[nodiscard]] film_contents read_film(int fd, u64 heading_bytes);

/// Stamps one fragment with its frame's number, overwriting the muxer's value. Returns false if the bytes are
/// not a fragment of one frame.
[[nodiscard]] bool stamp_fragment(std::span<u8> fragment, u64 frame_number) noexcept;

}  // namespace carousel::stages
