#pragma once
// Which parameters frame n has: a function of n and of the changes that were made, and of nothing else. A
// source that dies and makes frame n again, a second instance, a second source: all get the same set. Sets
// are immutable; each counts from one frame on.
//
//   state   {parity:1, sets:23, horizon:40}   horizon: every number below it may have been given its set,
//   none from it
//                                   on
//
//   a source, for its number n:   {k, h} -> {k, n + 1} where h <= n; then the newest set whose `from` is at
//                                 most n is n's
//   the supervisor, for a change: fills set k + 1 with from = h, then {k, h} -> {k + 1, h}
//
// Both are one CAS on one word, so a change counts from the first number that nobody has been given a set
// for, exactly: no frame in work changes, and `from` is known at once.
//
// Who may call: parameters_for any source; publish the supervisor alone (one thread, held to be alone by the
// run's lock). Memory order: a set is written before the CAS (acq_rel) that counts it; who reads it has read
// that state (acquire). What a crash leaves: a source between CAS and header: its number's set is decided,
// its successor finds the same. The supervisor between filling and CAS: a set that doesn't count yet, and is
// filled again by the next change. Room: a set may be filled anew only when no frame that may still be made
// needs what lies in it: publish() looks at the oldest frame.

#include <optional>
#include <span>

#include "ring/words.hpp"

namespace carousel::ring {

/// A damaged one reads as no sets and horizon 0: ask intact() wherever something follows from that.
struct parameter_state {
    u32 sets = 0;  ///< changes since the block was made, modulo 2^23
    u64 horizon = 0;
    [[nodiscard]] static constexpr parameter_state of(u64 w) {
        if (!intact(w)) return {};
        return {static_cast<u32>(field(w, 40, 23)), field(w, 0, 40)};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(sets, 40, 23) | place(horizon, 0, 40), 63);
    }
    bool operator==(const parameter_state&) const = default;
};
inline constexpr u32 readable_sets = shm::max_parameter_sets - 1;  ///< one is being filled

/// A fresh block's first set, for every frame from `first` on. `number`: as it is shown; changes count on
/// from it.
void initialise_parameters(shm::parameter_box& box, std::span<const std::byte> values, u64 first,
                           u64 number = 0) noexcept;

/// The set of frame `ring_sequence`, by a source that has leased its number; valid as long as the frame isn't
/// passed by all. Null: the state is damaged and wasn't mended in time (await_repair), so that nobody knows.
[[nodiscard]] const shm::parameter_set* parameters_for(shm::parameter_box& box, u64 ring_sequence) noexcept;

/// A change: counts from the returned frame on. `oldest`: no frame below it can be made any more (the
/// sources' tails, the smallest). Nothing: so many changes wait for frames that none may be given up; later
/// there is room.
[[nodiscard]] std::optional<u64> publish(shm::parameter_box& box, std::span<const std::byte> values,
                                         u64 oldest) noexcept;

/// What a state was that is damaged by one bit, known to count `sets` and to have a horizon within
/// [lowest, highest]: the one with the highest horizon of those that are one bit away. A horizon may lie
/// higher than it was: numbers below it that nobody has asked for have the newest set, and a change counts
/// from it. Nothing: none is.
[[nodiscard]] std::optional<parameter_state> repaired_state(u64 damaged, u32 sets, u64 lowest,
                                                            u64 highest) noexcept;

/// The newest set: what frames to come will have. By the supervisor, or from a copy.
[[nodiscard]] const shm::parameter_set& newest_parameters(const shm::parameter_box& box) noexcept;

}  // namespace carousel::ring
