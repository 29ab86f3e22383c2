#pragma once
// A file as a heading and one unit per frame: a fragment of MP4 (moof, mdat) or a cluster of Matroska. Each
// unit contains its frame's number, so the frames in a file can be determined from the file alone, even after
// its writer was killed during a write.

#include <optional>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "stages/encode/encoder.hpp"

namespace carousel::stages {

/// What a killed writer has left after the heading.
struct unit_contents {
    u64 bytes = 0;                   ///< number of bytes up to the end of the last complete unit
    std::optional<u64> first, last;  ///< numbers of the first and the last frame; empty: none yet
    u64 frames = 0;
};

/// Returns the number of bytes up to the first unit, or to the end of the file. Throws output_error.
[[nodiscard]] u64 heading_bytes_of(int fd, container format = container::mp4);
/// Reads from `heading_bytes` to the first incomplete unit. Throws output_error if the file cannot be read.
[[nodiscard]] unit_contents read_units(int fd, u64 heading_bytes, container format = container::mp4);

// MP4 (ISO/IEC 14496-12). A fragment's sequence number is its frame number + 1 (32 bits), its decode time the
// frame's time. Without own times that is the frame number times mp4_ticks.

inline constexpr u64 mp4_ticks = 1000;  ///< duration of a frame in units of the time scale, without own times

/// Stamps one fragment with its frame's number and time, overwriting the muxer's values. Returns false if the
/// bytes are not a fragment of one frame.
[[nodiscard]] bool stamp_fragment(std::span<u8> fragment, u64 frame_number, u64 time) noexcept;
[[nodiscard]] inline bool stamp_fragment(std::span<u8> fragment, u64 frame_number) noexcept {
    return stamp_fragment(fragment, frame_number, frame_number * mp4_ticks);
}

// Matroska (RFC 9559). The first element of a cluster is a Void element, which players skip, with the frame
// number in it.

/// Returns the cluster with its frame's number inserted; empty if the bytes are not one complete cluster.
[[nodiscard]] std::vector<u8> stamp_cluster(std::span<const u8> cluster, u64 frame_number);

namespace detail {
[[nodiscard]] u64 mp4_heading_bytes(int fd);
[[nodiscard]] unit_contents read_fragments(int fd, u64 heading_bytes);
[[nodiscard]] u64 matroska_heading_bytes(int fd);
[[nodiscard]] unit_contents read_clusters(int fd, u64 heading_bytes);

/// Big-endian numbers.
[[nodiscard]] u64 number(const u8* at, std::size_t bytes) noexcept;
void store(u8* at, std::size_t bytes, u64 v) noexcept;
/// Reads up to `count` bytes. Throws output_error.
[[nodiscard]] std::size_t read_some(int fd, u8* to, std::size_t count, u64 at);
[[nodiscard]] u64 size_of(int fd);
}  // namespace detail

}  // namespace carousel::stages
