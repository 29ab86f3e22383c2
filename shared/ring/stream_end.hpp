#pragma once
// The end of a stream that its source alone knows: frame n does not exist, and no later one does. The source
// says so by a claim in its own block; END is the supervisor's, who lowers it to the lowest claim that
// stands.
//
//   E[source]   {sequence + 1:40, job:9, parity:1, version:14}   0: none
// A claim stands as long as its job is OPEN in that version, and the number's word is LEASED to it. Its
// source keeps both until END is at most n (worker::end_stream), so that a claim that stands is seen. A
// revoked one's job is ABORTED: nobody believes it any more, the number waits again, and whoever leases it
// next says the same, for the end is a function of the sequence. No word that a process writes where it must
// not ends a run: it would have to name a job that holds that very number.
//
// Who may call: claim_end a source with its number leased; the rest the supervisor alone.
// Memory order: as all words (ring/words.hpp). Claims and END only tell numbers; nothing is published behind
// them.

#include <optional>

#include "ring/words.hpp"

namespace carousel::ring {

/// What a word says that is no claim: it is above every number, so nobody believes it.
inline constexpr u64 no_claim_ring_sequence = ~u64{0};

/// A damaged one is no claim: its source says it again.
struct end_claim {
    u64 ring_sequence = 0;  ///< the first number that does not exist
    u32 job = 0;            ///< that holds the number
    u32 version = 0;        ///< the low 14 bits of the job's
    [[nodiscard]] static constexpr end_claim of(u64 w) {
        if (!intact(w)) return {no_claim_ring_sequence, 0, 0};
        return {field(w, 24, 40) - 1, static_cast<u32>(field(w, 15, 9)), static_cast<u32>(field(w, 0, 14))};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(ring_sequence + 1, 24, 40) | place(job, 15, 9) | place(version, 0, 14), 14);
    }
    bool operator==(const end_claim&) const = default;
};
inline constexpr u64 no_claim = 0;
inline constexpr u64 claim_version_mask = (u64{1} << 14U) - 1;

/// The source says that its stream ends before `ring_sequence`, which (job, version) holds. A lower claim
/// that stands is left as it is; one that stands no more is written over. To be repeated until END is at most
/// `ring_sequence`.
void claim_end(shm::control_block& c, u32 source, u64 ring_sequence, u32 job, u64 version) noexcept;

struct stream_end {
    u32 source = shm::none;
    u64 ring_sequence = 0;
};
/// The lowest claim that stands, of sources that may end their stream.
[[nodiscard]] std::optional<stream_end> claimed_end(const shm::control_block& c) noexcept;
/// END -> `ring_sequence`, from unknown, from STOPPING or from a higher number, and everybody is woken.
/// False: it is as low already.
bool lower_end(shm::control_block& c, u64 ring_sequence) noexcept;

}  // namespace carousel::ring
