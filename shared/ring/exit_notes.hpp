#pragma once
// Records that supplement the exit note of a process: the user's request that ended the process, or the
// process's own access out of bounds.

#include "core/types.hpp"
#include "ring/participants.hpp"

namespace carousel::ring {

// Exit notes that the supervisor writes for a process before it ends that process at a user's request.
// Observers read these notes together with the exit notes of processes (participants.hpp), so a requested end
// is not shown as a crash. The protocol does not read them: exit_note::of() treats such a word as no note.
// A supervisor that dies between the note and the retirement leaves the note in the entry of a process that
// still works. A note by that process itself replaces the supervisor's note; if the process is killed without
// leaving a note, observers show the wrong reason.

enum class requested_end : u8 {
    none,
    down,     ///< `carousel down STAGE`: there is no successor until `carousel up STAGE`
    restart,  ///< `carousel restart STAGE`: the successor is started at once
};

/// This value differs from note_by_itself in 16 bits, and from note_from_outside in 16 bits.
inline constexpr u32 note_by_supervisor = 0x33CC'55AAU;

[[nodiscard]] constexpr u64 note_requested_end(requested_end why) {
    return note_of(note_by_supervisor, static_cast<u32>(why));
}
/// `raw`: incarnation::exit_note. Returns requested_end::none for every other note, and for a damaged one.
[[nodiscard]] constexpr requested_end requested_end_of(u64 raw) {
    for (const requested_end why : {requested_end::down, requested_end::restart})
        if (raw == note_requested_end(why)) return why;
    return requested_end::none;
}

// The record that a process makes about its own out-of-bounds access: one word in its incarnation entry, next
// to the exit note.
//   {recorded:1, what:3, index:8, slot:8, offset:44}
// Writer: the process itself, in its SIGSEGV handler or on the thread that received its device's fault,
// before the exit note (release). Reader: the supervisor, after the exit note (acquire). A death between the
// two stores leaves a word that no process reads, and the word in the next incarnation's entry starts as 0.

enum class wild_write_target : u8 {
    nothing = 0,
    input = 1,  ///< the output ring of another stage: index of the link, slot, offset in the slot
    asset = 2,  ///< another stage's asset: index of the asset, offset in it
    /// a GPU reports no address, so `offset` contains the oldest frame in flight, `index` the number of
    /// frames in flight, and `slot` the distance from the oldest to the newest frame in flight (255: 255 or
    /// more)
    device = 3,
    header = 4,  ///< frame headers of a ring that is another stage's output: link, slot, offset in the header
    output = 5,  ///< the guarded addresses after a slot of its own output ring: link, slot, offset from that
                 ///< slot's start
    after_input = 6,  ///< the guarded addresses after a slot of an input; the access was a read or a write
    block = 7,        ///< the control block: index of the part (shm/block_guard.hpp), element of the part (in
                      ///< `slot`), offset
};

struct wild_write {
    wild_write_target what = wild_write_target::nothing;
    u32 index = 0, slot = 0;
    u64 offset = 0;

    static constexpr u64 offset_mask = (u64{1} << 44) - 1;
    [[nodiscard]] constexpr u64 pack() const noexcept {
        return u64{1} << 63U | (static_cast<u64>(what) & 7U) << 60U | u64{index & 0xFFU} << 52U |
               u64{slot & 0xFFU} << 44U | (offset & offset_mask);
    }
    /// `nothing`: no access was recorded, or the word has a kind that no version writes.
    [[nodiscard]] static constexpr wild_write of(u64 raw) noexcept {
        const u64 what = raw >> 60U & 7U;
        if (raw >> 63U == 0 || what == 0 || what > static_cast<u64>(wild_write_target::block)) return {};
        return {static_cast<wild_write_target>(what), static_cast<u32>(raw >> 52U & 0xFFU),
                static_cast<u32>(raw >> 44U & 0xFFU), raw & offset_mask};
    }
    constexpr bool operator==(const wild_write&) const noexcept = default;
};

}  // namespace carousel::ring
