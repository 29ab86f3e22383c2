#pragma once
// Seats (the instance slots of a stage) and the incarnations that hold them. The supervisor raises a seat's
// epoch and prepares an entry; the process that it starts claims the entry by CAS before it touches a device.
// Every step is one CAS, so a supervisor that dies between two steps leaves no worker that is unknown to a
// later supervisor: an unclaimed entry can be withdrawn, and a withdrawn entry cannot be claimed.

#include "ring/words.hpp"
#include "shm/process_id.hpp"

namespace carousel::ring {

struct incarnation_id {
    u32 seat = shm::none, entry = shm::none, epoch = 0;
    [[nodiscard]] explicit operator bool() const noexcept { return entry != shm::none; }
    bool operator==(const incarnation_id&) const = default;
};

// ---- supervisor
/// Raises the seat's epoch and names a fresh STARTING entry for it. Empty if no entry is free (for example,
/// because all entries have processes that are not fenced), or if the seat's word is damaged. Afterwards call
/// recovery::revoke, which gives the seat's IDLE job words the new epoch (also for the very first start).
[[nodiscard]] incarnation_id appoint(shm::control_block& c, u32 seat) noexcept;
/// Withdraws an entry that no process has claimed: the entry becomes FENCED. Returns false if a process has
/// claimed it.
bool withdraw(shm::control_block& c, u32 entry) noexcept;
/// Marks an entry DOOMED: its words are being aborted.
void doom(shm::control_block& c, u32 entry) noexcept;
/// Makes a reserved entry UNUSED again. Called only if no process can have received the entry's index.
void discard(shm::control_block& c, u32 entry) noexcept;
/// FENCED -> DOOMED, for an entry that its seat still names, so that the entry is not reused. No effect in
/// any other state.
void doom_again(shm::control_block& c, u32 entry) noexcept;
/// Marks an entry FENCED: its process and the process's device work have ended.
void mark_fenced(shm::control_block& c, u32 entry) noexcept;
/// Returns true if the entry may be used again: it is UNUSED, or it is FENCED and no job word contains its
/// epoch.
[[nodiscard]] bool reusable(const shm::control_block& c, u32 entry) noexcept;

// ---- standbys: an entry that is prepared, claimed and mapped in advance, and gets its epoch when it is
// needed
/// Reserves an entry for a standby of this seat. The entry has epoch 0, which owns no word. Empty if no entry
/// is free.
[[nodiscard]] incarnation_id reserve_standby(shm::control_block& c, u32 seat) noexcept;
/// Raises the seat's epoch for the standby with this `entry` and makes it the LIVE holder. Afterwards call
/// recovery::revoke for the dead incarnation, then wake(). Empty if the entry is not a claimed standby of
/// this seat, or the seat's word is damaged.
[[nodiscard]] incarnation_id promote(shm::control_block& c, u32 seat, u32 entry) noexcept;
/// Rings the bell of the seat, on which its new holder sleeps, and the doorbell of its stage, on which the
/// holder may already wait.
void wake(shm::control_block& c, u32 seat) noexcept;

// ---- the incarnation itself
enum class claim_result : u8 { ok, withdrawn };
/// `as`: the identity of this process in the entry. A process that is not a child of the supervisor (a port's
/// program) passes the number that was assigned to it, with start time 0, so that no process is found,
/// counted or ended by that number.
[[nodiscard]] claim_result claim(shm::control_block& c, const incarnation_id& id,
                                 const shm::process_id& as = shm::this_process()) noexcept;
/// STARTING -> LIVE, called after the event handles are published.
bool go_live(shm::control_block& c, const incarnation_id& id, i32 pid = shm::this_process().pid) noexcept;
/// Does for the entry of a standby what claim() does for another entry.
[[nodiscard]] claim_result claim_standby(shm::control_block& c, const incarnation_id& id) noexcept;
/// Returns the epoch with which this standby's entry has become the LIVE holder of its seat; 0: the entry has
/// not become the holder yet.
[[nodiscard]] u32 promoted_epoch(const shm::control_block& c, const incarnation_id& id) noexcept;
/// True while another process of the run ends, is to end because its seat or its MPS domain has a successor,
/// or opens its device. `entry` and `domain` (0: none) of the caller.
[[nodiscard]] bool others_come_or_go(const shm::control_block& c, u32 entry, u32 domain) noexcept;

/// EMPTY -> LOADING by `id`. Returns false if the asset is not EMPTY.
bool begin_loading(shm::control_block& c, u32 asset, const incarnation_id& id) noexcept;
/// LOADING by `id` -> READY. Returns false if `id` is revoked and the asset belongs to another process.
[[nodiscard]] bool finish_loading(shm::control_block& c, u32 asset, const incarnation_id& id) noexcept;
[[nodiscard]] bool asset_is_ready(const shm::control_block& c, u32 asset) noexcept;

/// The time since which the entry's process waits for an external event, in ns; 0: it does not wait. The
/// reason is stored before the time and cleared after it, so a time without a reason means either that the
/// pause is just ending, or that a bit has flipped.
[[nodiscard]] inline u64 paused_since(const shm::incarnation& e) noexcept {
    const u64 since = e.paused_since_ns.load(std::memory_order_acquire);
    const bool has_reason =
        e.pause.load(std::memory_order_acquire) != static_cast<u64>(shm::pause_reason::nothing);
    return has_reason ? since : 0;
}

/// Exit notes, which a dying process records. 0: no note. The high half marks the word as a note and states
/// whether the signal came from outside; the two marks differ from 0 in half of their bits, and from each
/// other in all bits. The low half is {complement, signal, exit code}. So a single flipped bit never turns
/// the 0 of a live process into a note; if the bit belongs to a note, the note becomes a value that is
/// ignored.
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
    int exit_code = 0, signal = 0;  ///< signal 0: the process has exited
    [[nodiscard]] static constexpr exit_note of(u64 raw) {
        const u32 mark = static_cast<u32>(raw >> 32U), text = static_cast<u32>(raw) & 0xFFFFU;
        if ((mark != note_by_itself && mark != note_from_outside) || raw != note_of(mark, text)) return {};
        return {true, mark == note_from_outside, static_cast<int>(text & 0xFFU),
                static_cast<int>(text >> 8U)};
    }
};

}  // namespace carousel::ring
