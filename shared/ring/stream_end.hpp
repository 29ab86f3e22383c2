#pragma once
// Frames that do not exist in a stream: the frames after its end, and, for a reader with several inputs, the
// frames that are missing at one of these inputs.

#include <optional>

#include "ring/link.hpp"
#include "ring/words.hpp"

namespace carousel::ring {

// The end of a stream, if only the stream's source knows it: frame n does not exist, and neither does any
// later frame. The source reports the end by a claim in its own block; END belongs to the supervisor, which
// lowers END to the lowest valid claim.
//   E[source]   {sequence + 1:40, job:9, parity:1, version:14}   0: none
// A claim is valid as long as its job is OPEN in that version and the number's word is LEASED to that job.
// The source keeps both words in this state until END is at most n (worker::end_stream), so that the
// supervisor finds a valid claim. A revoked source's job is ABORTED: its claim is no longer valid, the number
// is WAIT again, and the incarnation that leases the number next makes the same claim, because the end is a
// function of the sequence. A wild write cannot end a run, because it would have to write the number of a job
// that holds the claimed ring sequence. Callers: claim_end() is for a source that has leased the number; all
// other functions are for the supervisor only. Memory order: as for all words (ring/words.hpp). Claims and
// END contain only numbers; they publish no other data.

/// The sequence of a word without a valid claim; it is above every number, so it never lowers END.
inline constexpr u64 no_claim_ring_sequence = ~u64{0};

/// A damaged word is not a claim; its source writes the claim again.
struct end_claim {
    u64 ring_sequence = 0;  ///< the first number that does not exist
    u32 job = 0;            ///< the job that holds the number
    u32 version = 0;        ///< the low 14 bits of the job's version
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

/// The source reports that its stream ends before `ring_sequence`, the number that (job, version) has leased.
/// A lower valid claim is kept; a claim that is no longer valid is overwritten. The call must be repeated
/// until END is at most `ring_sequence`.
void claim_end(shm::control_block& c, u32 source, u64 ring_sequence, u32 job, u64 version) noexcept;

struct stream_end {
    u32 source = shm::none;
    u64 ring_sequence = 0;
};
/// Returns the lowest valid claim among the sources that may end their stream (stage_flag::ends).
[[nodiscard]] std::optional<stream_end> claimed_end(const shm::control_block& c) noexcept;
/// END -> `ring_sequence`, from unknown, from STOPPING or from a higher number; then wakes all stages.
/// Returns false if END is already at most `ring_sequence`.
bool lower_end(shm::control_block& c, u64 ring_sequence) noexcept;

// Functions for frames that a reader with several inputs can no longer get at every input.

/// A stage with several inputs has a group in each of its rings, and these groups are closed and opened one
/// after the other. Meanwhile, one ring may let a frame bypass the stage, and another ring may keep the same
/// frame for the stage. The stage then never gets that frame at all inputs, and the ring and the stage would
/// wait for each other. So the stage lets the frame bypass it at all of its inputs, WAIT -> SKIPPED. Called
/// by any process of the stage when it searches for work. `ready` was read before the call, so the frame had
/// bypassed the stage before the WAIT was read. After a crash between two changes, the next process that
/// searches for work makes the remaining changes.
void let_partial_frames_pass(const shm::stage_block& stage, std::optional<link_ref> (&input)[shm::max_inputs],
                             const ready_map (&ready)[shm::max_inputs]) noexcept;

}  // namespace carousel::ring
