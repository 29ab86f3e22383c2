#pragma once
// Exit notes that the supervisor writes for a process before it ends that process at a user's request.
// Observers read these notes together with the exit notes of processes (participants.hpp), so a requested end
// is not shown as a crash. The protocol does not read them: exit_note::of() treats such a word as no note.
//
// A supervisor that dies between the note and the retirement leaves the note in the entry of a process that
// still works. A note by that process itself replaces the supervisor's note; if the process is killed without
// leaving a note, observers show the wrong reason.

#include "ring/participants.hpp"

namespace carousel::ring {

enum class requested_end : u8 {
    none,
    down,     ///< `carousel down STAGE`: there is no successor until `carousel up STAGE`
    restart,  ///< `carousel restart STAGE`: the successor is started at once
};

/// Differs from note_by_itself and from note_from_outside in 16 bits each.
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

}  // namespace carousel::ring
