#pragma once
// Seats and those who sit on them. The supervisor raises a seat's epoch and prepares an entry; the process
// that it starts claims the entry by CAS before it touches a device. Every step is one CAS, so a supervisor
// that dies between two of them leaves no worker that a later supervisor doesn't know of: an unclaimed entry
// can be withdrawn, and a withdrawn one can't be claimed.

#include "ring/words.hpp"
#include "shm/process_id.hpp"

namespace carousel::ring {

struct incarnation_id {
    u32 seat = shm::none, entry = shm::none, epoch = 0;
    [[nodiscard]] explicit operator bool() const noexcept { return entry != shm::none; }
};

// ---- supervisor
/// Raises the seat's epoch and names a fresh STARTING entry for it. Empty when no entry is free (all are
/// unfenced). Hand the new epoch the seat's IDLE job words by recovery::revoke (which also serves the very
/// first start).
[[nodiscard]] incarnation_id appoint(shm::control_block& c, u32 seat) noexcept;
/// Takes back an entry that nobody has claimed. False: somebody has.
bool withdraw(shm::control_block& c, u32 entry) noexcept;
/// Marks an entry DOOMED (its words are being aborted) or FENCED (its process is gone, device work included).
void doom(shm::control_block& c, u32 entry) noexcept;
/// An entry that was reserved and that nobody can ever have been told of: UNUSED again.
void discard(shm::control_block& c, u32 entry) noexcept;
/// FENCED -> DOOMED: an entry that its seat still names is nobody's to be used again. Else nothing.
void doom_again(shm::control_block& c, u32 entry) noexcept;
void mark_fenced(shm::control_block& c, u32 entry) noexcept;
/// FENCED and no job word bears its epoch: may be used again.
[[nodiscard]] bool reusable(const shm::control_block& c, u32 entry) noexcept;

// ---- standbys: an entry that is prepared, claimed and mapped in peace, and gets its epoch when it is needed
/// Reserves an entry for a standby of this seat. It bears epoch 0, which owns no word. Empty when no entry is
/// free.
[[nodiscard]] incarnation_id reserve_standby(shm::control_block& c, u32 seat) noexcept;
/// Raises the seat's epoch for the standby behind `entry` and makes it the LIVE holder. Call recovery::revoke
/// for the dead one next, then wake(). Empty when the entry is no claimed standby of this seat.
[[nodiscard]] incarnation_id promote(shm::control_block& c, u32 seat, u32 entry) noexcept;
/// Rings for the seat's new holder, and for what it may have begun to wait for.
void wake(shm::control_block& c, u32 seat) noexcept;

// ---- the incarnation itself
enum class claim_result : u8 { ok, withdrawn };
/// `as`: how the entry names this process. One that is no child of the supervisor's (a port's program) takes
/// the number that it was given, with start time 0: nobody finds, counts or ends a process by that.
[[nodiscard]] claim_result claim(shm::control_block& c, const incarnation_id& id,
                                 const shm::process_id& as = shm::this_process()) noexcept;
/// STARTING -> LIVE, once the event handles are published.
bool go_live(shm::control_block& c, const incarnation_id& id, i32 pid = shm::this_process().pid) noexcept;
/// The same for a standby's entry.
[[nodiscard]] claim_result claim_standby(shm::control_block& c, const incarnation_id& id) noexcept;
/// The epoch with which this standby's entry has become its seat's LIVE holder; 0: not yet.
[[nodiscard]] u32 promoted_epoch(const shm::control_block& c, const incarnation_id& id) noexcept;

/// EMPTY -> LOADING by `id`. False: it is not EMPTY.
bool begin_loading(shm::control_block& c, u32 asset, const incarnation_id& id) noexcept;
/// LOADING by `id` -> READY. False: `id` is revoked, and the asset another's.
[[nodiscard]] bool finish_loading(shm::control_block& c, u32 asset, const incarnation_id& id) noexcept;
[[nodiscard]] bool asset_is_ready(const shm::control_block& c, u32 asset) noexcept;

/// Since when the entry's process waits for something outside; 0: it doesn't. The reason is there before the
/// time and goes behind it, so a time without one is a hold that ends just now, or a flipped bit.
[[nodiscard]] inline u64 paused_since(const shm::incarnation& e) noexcept {
    const u64 since = e.paused_since_ns.load(std::memory_order_acquire);
    const bool has_reason =
        e.pause.load(std::memory_order_acquire) != static_cast<u64>(shm::pause_reason::nothing);
    return has_reason ? since : 0;
}

/// Exit notes: what a dying process could still say. 0: nothing. The high half says that it is a note, and
/// who sent the signal, by marks that differ from each other and from 0 in half of their bits or all; the
/// low half is {complement, signal, exit code}. So one flipped bit makes no note of a living process's 0, and
/// of a note one that says nothing.
inline constexpr u32 note_by_itself = 0x5A0F'C396U, note_from_outside = ~note_by_itself;
[[nodiscard]] constexpr u64 note_of(u32 mark, u32 text) {
    return u64{mark} << 32U | u64{~text & 0xFFFFU} << 16U | (text & 0xFFFFU);
}
[[nodiscard]] constexpr u64 note_exit(int code) {
    return note_of(note_by_itself, static_cast<u32>(code) & 0xFFU);
}
[[nodiscard]] constexpr u64 note_signal_from_outside(int signal) {
    return note_of(note_from_outside, static_cast<u32>(signal) << 8U);
}
[[nodiscard]] constexpr u64 note_signal(int signal) {
    return note_of(note_by_itself, static_cast<u32>(signal) << 8U);
}
struct exit_note {
    bool present = false, outside = false;
    int exit_code = 0, signal = 0;  ///< signal 0: it has exited
    [[nodiscard]] static constexpr exit_note of(u64 raw) {
        const u32 mark = static_cast<u32>(raw >> 32U), text = static_cast<u32>(raw) & 0xFFFFU;
        if ((mark != note_by_itself && mark != note_from_outside) || raw != note_of(mark, text)) return {};
        return {true, mark == note_from_outside, static_cast<int>(text & 0xFFU),
                static_cast<int>(text >> 8U)};
    }
};

}  // namespace carousel::ring
