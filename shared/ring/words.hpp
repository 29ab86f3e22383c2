#pragma once
// The authoritative words: their fields within 64 bits, and the only legal changes. Every change is one CAS
// that expects the exact word that was read; no process uses a plain store on a word of a running pipeline.
//
//   J[job]            {version:36, epoch:24, parity:1, state:3}
//                     IDLE -> OPEN -> SUBMITTED -> COMMITTED -> IDLE(version+1)
//                     OPEN, SUBMITTED -> ABORTED (supervisor) -> IDLE(version+1, new epoch)
//                     Only this word is authoritative on whether the work of a stage on a frame has happened.
//   S[slot]           {generation:24, job:12, version:24, parity:1, state:3}
//                     FREE -> FILL -> READY -> FREE(generation+1)
//                     FILL -> QUARANTINED -> FREE(generation+1)
//                     FILL -> FREE(generation+1) (E3: a frame beyond the end of stream)
//   C[slot][group]    {generation:24, job:9, version:24, attempts:4, parity:1, state:2}
//                     WAIT -> LEASED -> DONE | WAIT -> SKIPPED
//                     If the word's generation is older than that of the slot, the word counts as WAIT with
//                     no attempts. If the word's generation is newer, the slot word that the reader has read
//                     is outdated.
//   Q[source][n % N]  the same layout, generation = lap of the number:
//                     WAIT(lap) -> LEASED(lap) -> WAIT(lap+1)
//
// Each word has even parity over all of its bits (shm/number_word.hpp), set by pack() and checked by of(). A
// word with odd parity is *damaged*: this is a separate state that equals no other state and has no tag. No
// process acts on a damaged word: stages wait for a bounded time (await_repair), and the supervisor repairs
// the word. No CAS produces a damaged word.
//
// Counters wrap (counters of 24 bits within hours, versions of 36 bits within years), so no counter is ever
// treated as larger than another one. Words are compared for equality, and generations by their distance
// (seen_at). 0 means "none" only for an epoch (next_epoch). Two values that must be distinguished are never a
// whole wrap apart, because a tag is removed before its job gets its next version, and every column is closed
// when a READY slot is freed.
//
// Memory order: every CAS is acq_rel and every read of a word is acquire, so a process that reads a word can
// also read everything that the word's writer wrote before it (header before SUBMITTED, event record before
// SUBMITTED, payload before COMMITTED on the CPU backend).

#include <atomic>

#include "core/types.hpp"
#include "shm/control_block.hpp"

namespace carousel::ring {

using shm::intact;
using shm::with_parity;
using shm::word;

constexpr u64 field(u64 value, unsigned shift, unsigned width) {
    return (value >> shift) & ((u64{1} << width) - 1);
}
constexpr u64 place(u64 value, unsigned shift, unsigned width) {
    return (value & ((u64{1} << width) - 1)) << shift;
}

template <typename State>
constexpr u64 code(State s) {
    return static_cast<u64>(s);
}

/// The bits of a job's version that slot and group words store.
inline constexpr u64 version_mask = (u64{1} << 24) - 1;
inline constexpr u64 generation_mask = (u64{1} << 24) - 1;
inline constexpr u64 epoch_mask = (u64{1} << 24) - 1;

/// Epoch 0 belongs to no incarnation, even after the epochs wrap around.
constexpr u32 next_epoch(u32 epoch) { return epoch + 1 > epoch_mask ? 1 : epoch + 1; }
/// Number of next_epoch() steps from `first` to `epoch`. Epochs wrap around after the mask and skip 0.
constexpr u32 epochs_between(u32 first, u32 epoch) {
    return epoch >= first ? epoch - first : static_cast<u32>(epoch + epoch_mask - first);
}
/// Returns the lap of number n of a source whose link has this window: the generation of the number's word in
/// that lap.
constexpr u32 lap_of(const shm::source_block& q, u64 n, u64 window) {
    return static_cast<u32>((n / window + q.first_lap) & generation_mask);
}

enum class job_state : u8 { idle, open, submitted, committed, aborted, damaged = 15 };
struct job_word {
    u64 version = 0;
    u32 epoch = 0;
    job_state state = job_state::idle;
    [[nodiscard]] static constexpr job_word of(u64 w) {
        if (!intact(w)) return {0, 0, job_state::damaged};
        return {field(w, 28, 36), static_cast<u32>(field(w, 4, 24)), static_cast<job_state>(field(w, 0, 3))};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(version, 28, 36) | place(epoch, 4, 24) | place(code(state), 0, 3), 3);
    }
    [[nodiscard]] constexpr job_word with(job_state s) const { return {version, epoch, s}; }
    bool operator==(const job_word&) const = default;
};

enum class slot_state : u8 { free, fill, ready, quarantined, damaged = 15 };
struct slot_word {
    u32 generation = 0;
    u32 job = 0;
    u32 version = 0;  ///< the low 24 bits of the job's version
    slot_state state = slot_state::free;
    [[nodiscard]] static constexpr slot_word of(u64 w) {
        if (!intact(w)) return {0, 0, 0, slot_state::damaged};
        return {static_cast<u32>(field(w, 40, 24)), static_cast<u32>(field(w, 28, 12)),
                static_cast<u32>(field(w, 4, 24)), static_cast<slot_state>(field(w, 0, 3))};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(
            place(generation, 40, 24) | place(job, 28, 12) | place(version, 4, 24) | place(code(state), 0, 3),
            3);
    }
    [[nodiscard]] constexpr slot_word with(slot_state s) const { return {generation, job, version, s}; }
    [[nodiscard]] constexpr slot_word freed() const {
        return {static_cast<u32>((generation + 1) & generation_mask), 0, 0, slot_state::free};
    }
    [[nodiscard]] constexpr bool tagged(u32 j, u64 v) const {
        return job == j && version == (v & version_mask);
    }
    bool operator==(const slot_word&) const = default;
};

enum class lease_state : u8 { wait, leased, done, skipped, damaged = 15 };
/// The low 3 bits of `attempts` are a failure count. Bit 3 means "lease alone": a death with several frames
/// in flight made this frame a suspect, and the next incarnation that leases this frame has no other frame in
/// flight.
struct lease_word {
    u32 generation = 0;  ///< the slot's generation, or the lap of a source's number
    u32 job = 0;
    u32 version = 0;
    u32 attempts = 0;
    lease_state state = lease_state::wait;
    [[nodiscard]] static constexpr lease_word of(u64 w) {
        if (!intact(w)) return {0, 0, 0, 0, lease_state::damaged};
        return {static_cast<u32>(field(w, 40, 24)), static_cast<u32>(field(w, 31, 9)),
                static_cast<u32>(field(w, 7, 24)), static_cast<u32>(field(w, 3, 4)),
                static_cast<lease_state>(field(w, 0, 2))};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(generation, 40, 24) | place(job, 31, 9) | place(version, 7, 24) |
                               place(attempts, 3, 4) | place(code(state), 0, 2),
                           2);
    }
    [[nodiscard]] constexpr u32 failures() const { return attempts & 7U; }
    [[nodiscard]] constexpr bool alone() const { return (attempts & 8U) != 0; }
    [[nodiscard]] constexpr bool tagged(u32 j, u64 v) const {
        return state == lease_state::leased && job == j && version == (v & version_mask);
    }
    /// Returns the meaning of the word for a slot that was read at `slot_generation`. An older word is stale
    /// and reads as WAIT. A newer word means that the reader's slot word is outdated (the slot was freed and
    /// filled again in the meantime). Such a word reads as SKIPPED: if it read as WAIT, a CAS from that value
    /// would lease a slot that has been reused. (Distances are modulo 2^24. Freeing a READY slot closes every
    /// column; only R5 and E3 free a slot without that, and leave its columns one generation older each
    /// time.)
    [[nodiscard]] constexpr lease_word seen_at(u32 slot_generation) const {
        if (generation == slot_generation || state == lease_state::damaged) return *this;
#ifndef CAROUSEL_BUG_NEWER_IS_STALE
        const bool newer = ((generation - slot_generation) & generation_mask) < (u64{1} << 23);
#else
        const bool newer = false;  // seeded bug: any other generation reads as WAIT
#endif
        return {slot_generation, 0, 0, 0, newer ? lease_state::skipped : lease_state::wait};
    }
    bool operator==(const lease_word&) const = default;
};
inline constexpr u32 max_failures = 7;

/// A damaged word reads as epoch 0 and no entry, so check intact() wherever the result depends on the value.
struct seat_word {
    u32 epoch = 0;
    u32 entry = shm::none;  ///< index of the incarnation that holds the seat, or none
    [[nodiscard]] static constexpr seat_word of(u64 w) {
        if (!intact(w)) return {};
        const u32 e = static_cast<u32>(field(w, 0, 16));
        return {static_cast<u32>(field(w, 16, 24)), e == 0 ? shm::none : e - 1};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(epoch, 16, 24) | (entry == shm::none ? 0 : place(entry + 1U, 0, 16)), 63);
    }
    bool operator==(const seat_word&) const = default;
};

/// An asset: epoch and seat of the process that loads the asset or has loaded it
struct asset_word {
    shm::asset_state state = shm::asset_state::empty;
    u32 epoch = 0, seat = 0;  ///< 0: not yet claimed by a process
    [[nodiscard]] static constexpr asset_word of(u64 w) {
        if (!intact(w)) return {shm::asset_state::damaged, 0, 0};
        return {static_cast<shm::asset_state>(field(w, 0, 3)), static_cast<u32>(field(w, 4, 24)),
                static_cast<u32>(w >> 28U)};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(code(state), 0, 3) | place(epoch, 4, 24) | u64{seat} << 28U, 3);
    }
};

enum class entry_state : u8 { unused, starting, standby, live, doomed, fenced, damaged = 15 };
struct entry_word {
    u32 pid = 0;  ///< for a latest group: the entry of the member
    u32 epoch = 0;
    u32 seat = 0;
    entry_state state = entry_state::unused;
    [[nodiscard]] static constexpr entry_word of(u64 w) {
        if (!intact(w)) return {0, 0, 0, entry_state::damaged};
        return {static_cast<u32>(field(w, 40, 24)), static_cast<u32>(field(w, 16, 24)),
                static_cast<u32>(field(w, 4, 12)), static_cast<entry_state>(field(w, 0, 3))};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(
            place(pid, 40, 24) | place(epoch, 16, 24) | place(seat, 4, 12) | place(code(state), 0, 3), 3);
    }
    [[nodiscard]] constexpr entry_word with(entry_state s) const { return {pid, epoch, seat, s}; }
    bool operator==(const entry_word&) const = default;
};

enum class group_state : u8 { absent, blocking, closed, latest, damaged = 15 };
struct group_word {
    u32 entry = 0;  ///< latest group: the entry of the member
    u32 joins = 0;  ///< counts joins, so that a dead member's word is never mistaken for a new member's
    group_state state = group_state::absent;
    [[nodiscard]] static constexpr group_word of(u64 w) {
        if (!intact(w)) return {0, 0, group_state::damaged};
        return {static_cast<u32>(field(w, 4, 16)), static_cast<u32>(field(w, 20, 32)),
                static_cast<group_state>(field(w, 0, 3))};
    }
    [[nodiscard]] constexpr u64 pack() const {
        return with_parity(place(entry, 4, 16) | place(joins, 20, 32) | place(code(state), 0, 3), 3);
    }
};

/// What a process waits for; `none` if its main thread does not wait, or waits for the process's own frames.
enum class wait_kind : u8 { none, frame, free_slot, turn };
/// What the main thread of a process waits for, before it sleeps. Written only by the process itself, with a
/// plain store, for displays: no step depends on it. A process that dies leaves its last value, which is no
/// longer read. A process that is stopped leaves a value that may have become false: displays ignore it
/// unless the heartbeat is recent. If the word has a value that the process cannot have stored (for example,
/// a ring that its stage neither reads nor fills), the supervisor sets the word to 0 (repair_static); the
/// process stores its wait again before it next sleeps.
struct wait_word {
    wait_kind kind = wait_kind::none;
    u32 link = shm::none;  ///< for `frame`, the input that has no frame (none for a source); for `free_slot`,
                           ///< the output
    u64 since_ms = 0;      ///< CLOCK_MONOTONIC, the low 40 bits
    [[nodiscard]] static constexpr wait_word of(u64 w) {
        if (!intact(w)) return {};
        const u32 link = static_cast<u32>(field(w, 4, 8));
        return {static_cast<wait_kind>(field(w, 0, 2)), link == 0 ? shm::none : link - 1, field(w, 12, 40)};
    }
    [[nodiscard]] constexpr u64 pack() const {
        if (kind == wait_kind::none) return 0;
        return with_parity(place(code(kind), 0, 2) | (link == shm::none ? 0 : place(link + 1U, 4, 8)) |
                               place(since_ms, 12, 40),
                           63);
    }
    bool operator==(const wait_word&) const = default;
};

/// END: the first sequence that does not exist.
inline constexpr u64 end_unknown = ~u64{0};
inline constexpr u64 end_stopping = ~u64{0} - 1;

/// The tag that identifies the completion of a job everywhere; the CPU backend stores it in a slot's event
/// word: {parity:1, job:11, version:28, epoch:24}. Tags are compared as whole values. Any two tags differ in
/// at least two bits, so a flipped bit never turns a tag into another one.
[[nodiscard]] constexpr u64 event_tag(u32 job, u64 version, u32 epoch) {
    return with_parity(place(job, 52, 11) | place(version, 24, 28) | place(epoch, 0, 24), 63);
}

inline bool cas(word& at, u64 expected, u64 desired) noexcept {
    return at.compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                      std::memory_order_acquire);
}
inline u64 load(const word& at) noexcept { return at.load(std::memory_order_acquire); }
// cas() and load() for words that hold a plain number:
using shm::cas;
using shm::load;

/// The longest time that a process waits for the repair of its own damaged word; the supervisor checks about
/// fifty times per second. After that the process treats the word as owned by another process, and the
/// supervisor's audit finds the remaining damage.
inline constexpr u64 repair_timeout_ns = 500'000'000;
/// Returns true if the word is intact, either at once or within repair_timeout_ns; false if it is still
/// damaged.
bool await_repair(const word& at) noexcept;
/// A CAS by the word's owner: if the word is damaged, waits for its repair and tries once more.
bool cas_after_repair(word& at, u64 expected, u64 desired) noexcept;

}  // namespace carousel::ring
