#pragma once
// The parameters of frame n are a function only of n and of the changes that were made. A source that dies
// and makes frame n again, a second instance, and a second source all get the same set. Sets are immutable;
// each applies from one frame on.
//
//   state   {parity:1, sets:23, horizon:40}   Every number below the horizon may have been given its set; no
//                                             number from the horizon on has been given one.
//
//   a source, for its number n:   {k, h} -> {k, n + 1} where h <= n. After that, the set of n is the newest
//                                 set whose `from` is at most n.
//   the supervisor, for a change: fills set k + 1 with from = h, then {k, h} -> {k + 1, h}
//
// Each of these two steps is one CAS on the same word, so a change applies exactly from the first number for
// which no source has been given a set. Therefore the parameters of a frame in progress never change, and
// `from` is known at once.
//
// parameters_for() may be called by any source; publish() only by the supervisor (one thread; the run's lock
// excludes a second supervisor). Memory order: a set is written before the CAS (acq_rel) that makes it valid;
// a reader of the set has read that state (acquire). What a crash leaves: if a source dies between CAS and
// header, the set of its number is already determined, and its successor finds the same set. If a supervisor
// dies between filling and CAS, the set is not valid yet, and the next change fills it again. A set may be
// refilled only when no frame that may still be made needs it, so publish() checks the oldest frame.

#include <optional>
#include <span>

#include "ring/words.hpp"

namespace carousel::ring {

/// A damaged word reads as no sets and horizon 0, so check intact() wherever the result depends on the value.
struct parameter_state {
    u32 sets = 0;  ///< number of changes since the block was made, modulo 2^23
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

/// The first set of a fresh block, for every frame from `first` on. `number`: the number that is displayed
/// for this set; later changes get the numbers that follow it.
void initialise_parameters(shm::parameter_box& box, std::span<const std::byte> values, u64 first,
                           u64 number = 0) noexcept;

/// Returns the set of frame `ring_sequence`, for a source that has leased this number; valid until the frame
/// is below the tails of all sources. Null: the state is damaged and was not repaired in time (await_repair),
/// so the set is unknown.
[[nodiscard]] const shm::parameter_set* parameters_for(shm::parameter_box& box, u64 ring_sequence) noexcept;

/// Publishes a change; returns the frame from which it applies. `oldest`: the lowest frame that can still be
/// made (the smallest tail of the sources' links). Empty if frames still need the oldest sets, so that there
/// is not enough room, or if the state is damaged; the caller tries again later.
[[nodiscard]] std::optional<u64> publish(shm::parameter_box& box, std::span<const std::byte> values,
                                         u64 oldest) noexcept;

/// Repairs a state that is damaged by one bit and is known to contain `sets` and a horizon within [lowest,
/// highest]: among the values that differ from the damaged one in one bit and contain `sets` and such a
/// horizon, returns the value with the highest horizon. This horizon may be higher than the original one.
/// Numbers below this horizon for which no source has requested a set get the newest set, and a change
/// applies from the horizon on. Empty if no value matches.
[[nodiscard]] std::optional<parameter_state> repaired_state(u64 damaged, u32 sets, u64 lowest,
                                                            u64 highest) noexcept;

/// Returns the newest set, which future frames will have. Used by the supervisor, or on a copy of the block.
[[nodiscard]] const shm::parameter_set& newest_parameters(const shm::parameter_box& box) noexcept;

}  // namespace carousel::ring
