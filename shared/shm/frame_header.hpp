#pragma once
// A frame's header, and the segment of a ring that contains the headers of its slots: all data of a frame in
// addition to its payload.
//
// Writer: the owner of the slot's FILL word, between FILL and SUBMITTED; after that the header is final until
// the slot is FREE. Readers: a process that has read the slot as READY, or holds a lease on it
// (ring/link.hpp). Memory order: the header is written with plain stores; after that SUBMITTED is stored
// (release), then COMMITTED, then READY, which the reader acquires. `ring_sequence` is also read without a
// lease, and is therefore an atomic word. A crash leaves a partly written header in a slot that is FILL or
// QUARANTINED, which no process reads.
//
// `seal` covers all other fields in use (ring/header_check.hpp): it is written as the last field before
// SUBMITTED, and verified by each process that leases the frame. `ring_sequence`, which is read without a
// lease, has its own parity.
//
// A reader must assume that the header was written by a stage of another build or by a faulty stage, and must
// clamp every count and index before using it.

#include <atomic>
#include <cstddef>

#include "shm/frame_meta.hpp"
#include "shm/number_word.hpp"

namespace carousel::shm {

using word = std::atomic<u64>;
static_assert(word::is_always_lock_free && sizeof(word) == 8);

inline constexpr u32 max_slots = 64;             ///< buffers per link
inline constexpr u32 max_metadata_bytes = 1024;  ///< per frame, frame/metadata.hpp
inline constexpr u32 max_used_planes = 8;        ///< number of planes of a payload that may be used in part
inline constexpr u32 max_plane_rank = 4;
inline constexpr u32 max_sampled_inputs = 4;      ///< per stage
inline constexpr u64 no_sampled_frame = ~u64{0};  ///< stored instead of a sequence if no frame existed yet
inline constexpr u64 frame_page = 4096;  ///< size of a page, because access rights apply to whole pages

/// The used part of each payload plane: the number of elements along each dimension, at most the number in
/// the format. The content of the rest of the plane is unspecified.
struct used_extents {
    u32 planes;  ///< one bit per plane whose row below is valid; 0: all planes are used as declared
    u32 reserved;
    u64 of[max_used_planes][max_plane_rank];
};

/// Contains, in addition to frame_meta (which is the same in all rings), the data that belongs to this ring
/// and the data of variable size.
struct alignas(64) frame_header {
    frame_meta meta;               ///< a member instead of a base, because the block must have standard
                                   ///< layout
    sequence_word ring_sequence;   ///< the frame's position in the ring
    u64 claimed_ns, submitted_ns;  ///< of this link's producer
    u32 epoch;  ///< the producer's epoch, which the status word in ring memory must contain
    u32 maker_seat;
    u64 seal;              ///< checksum over the frame's data: ring/header_check.hpp
    u32 metadata_bytes;    ///< bytes of `metadata` in use
    u32 metadata_omitted;  ///< number of metadata entries that were dropped for lack of room, by joins in
                           ///< this stage or upstream
    used_extents used;     ///< describes this ring's payload, so it is not forwarded with the frame
    /// For each of the producer's sampled inputs: the newest frame at the time when work on this frame began,
    /// or no_sampled_frame. This field is not forwarded, because a retried frame may have other values.
    u32 sampled_inputs;
    u32 previous_epoch;  ///< of a stage with state: the epoch of the state from which this frame's state was
                         ///< computed; none: it is the first state
    u64 sampled_sequence[max_sampled_inputs];
    /// a copy of the source's parameter set, forwarded from ring to ring
    alignas(8) std::byte parameters[max_parameter_bytes];
    alignas(8) std::byte metadata[max_metadata_bytes];
};

/// The headers of a ring, one per slot.
struct alignas(frame_page) frame_segment {
    frame_header header[max_slots];
};
static_assert(sizeof(frame_segment) % frame_page == 0);

/// Returns the size in bytes of the frame segment of a ring with `slots` slots: whole pages.
[[nodiscard]] constexpr u64 frame_bytes(u32 slots) noexcept {
    const u64 bytes = u64{slots < max_slots ? slots : max_slots} * sizeof(frame_header);
    return (bytes + frame_page - 1) / frame_page * frame_page;
}

}  // namespace carousel::shm
