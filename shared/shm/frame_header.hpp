#pragma once
// A frame's header, and the segment of a ring that holds the headers of its slots: all that a frame carries
// beside its payload.
//
// Who writes: the owner of the slot's FILL word, between FILL and SUBMITTED; then it is final until the slot
// is FREE. Who reads: whoever has read the slot as READY, or holds a lease on it (ring/link.hpp). Memory
// order: header (plain stores) before SUBMITTED (release) before COMMITTED before READY, which the reader
// acquires. `ring_sequence` is looked at in passing, without a lease, and therefore an atomic word. A crash
// leaves a header half written in a slot that is FILL or QUARANTINED, which nobody reads.
//
// `seal` is over all the rest that is in use (ring/header_check.hpp): written last before SUBMITTED, verified
// by whoever leases the frame. `ring_sequence`, which is looked at without a lease, has a parity of its own.
//
// A header is read from memory that a stage of another build or a broken one has written: whoever reads a
// count or an index in it clamps it first.

#include <atomic>
#include <cstddef>

#include "core/types.hpp"
#include "shm/number_word.hpp"
#include "shm/parameter_bytes.hpp"

namespace carousel::shm {

using word = std::atomic<u64>;
static_assert(word::is_always_lock_free && sizeof(word) == 8);

inline constexpr u32 max_slots = 64;             ///< buffers a link
inline constexpr u32 max_metadata_bytes = 1024;  ///< of a frame, ring/metadata.hpp
inline constexpr u32 max_used_planes = 8;        ///< planes of a payload that may be used in part
inline constexpr u32 max_plane_rank = 4;
inline constexpr u32 max_sampled_inputs = 4;      ///< of a stage
inline constexpr u64 no_sampled_frame = ~u64{0};  ///< in place of a sequence: there was none yet
inline constexpr u64 frame_page = 4096;           ///< rights are a page's

/// Whose clock a frame's capture time is of.
enum class capture_clock : u32 {
    none = 0,      ///< not given
    live = 1,      ///< CLOCK_MONOTONIC of this machine, since it was started
    recorded = 2,  ///< of a recording: no latency can be told from it
};

/// A capture time of this machine's clock; 0: it is not of that.
[[nodiscard]] constexpr u64 live_capture_ns(capture_clock clock, u64 capture_ns) noexcept {
    return clock == capture_clock::live ? capture_ns : 0;
}

/// What of a payload's planes is in use: elements along each dimension, at most as many as the format says.
/// The rest of the plane holds anything.
struct used_extents {
    u32 planes;  ///< a bit a plane whose row below counts; 0: all are used as declared
    u32 reserved;
    u64 of[max_used_planes][max_plane_rank];
};

struct alignas(64) frame_header {
    sequence_word ring_sequence;  ///< the frame's position in the ring
    u32 epoch;                    ///< of the producer: what the status word in ring memory must bear
    u32 void_stage;               ///< stage that gave the frame up, or `none`: the payload is whole
    u32 tombstone_reason;         ///< exit_note of the last attempt
    u32 maker_seat;
    u64 born_ns;                   ///< source's claim
    u64 claimed_ns, submitted_ns;  ///< of this link's producer
    f64 time_s;                    ///< frame_number / fps
    u64 parameter_number;          ///< which set of parameters: 0 at the start, one more with each change
    /// What its stages call it: the same as `ring_sequence`, but where these rings hold only some of another
    /// host's frames, which are called there as they are on that host.
    u64 frame_number;
    u64 seal;              ///< over what the frame carries: ring/header_check.hpp
    u64 capture_ns;        ///< when what the frame shows happened, as its source says
    capture_clock clock;   ///< of capture_ns
    u32 metadata_bytes;    ///< of `metadata` that are in use
    u32 metadata_omitted;  ///< entries that found no room at a join, here or before
    used_extents used;     ///< of this ring's payload alone: it doesn't travel
    /// Which frame of each of its maker's sampled inputs was the newest one when this frame was begun, or
    /// no_sampled_frame. It doesn't travel either: a frame that is made again may have another one.
    u32 sampled_inputs;
    u32 reserved;
    u64 sampled_sequence[max_sampled_inputs];
    /// a copy of the set: the source's, handed on from ring to ring
    alignas(8) std::byte parameters[max_parameter_bytes];
    alignas(8) std::byte metadata[max_metadata_bytes];
};

/// The headers of a ring, a header a slot.
struct alignas(frame_page) frame_segment {
    frame_header header[max_slots];
};
static_assert(sizeof(frame_segment) % frame_page == 0);

/// Bytes of a frame segment that a ring of so many slots needs: whole pages.
[[nodiscard]] constexpr u64 frame_bytes(u32 slots) noexcept {
    const u64 bytes = u64{slots < max_slots ? slots : max_slots} * sizeof(frame_header);
    return (bytes + frame_page - 1) / frame_page * frame_page;
}

}  // namespace carousel::shm
