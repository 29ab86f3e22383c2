#pragma once
// Taking the processes of a run over from a dead supervisor, which may have been interrupted between any two
// of its steps. Nothing is taken for granted that the control block does not say. For each seat there may be
//   a process that sits (the seat's current entry, claimed): it goes on; dead by now, it is retired as ever;
//   a current entry that nobody has claimed: withdrawn, so that a process the dead one had just spawned finds
//   no place, and
//     retired as an entry without a process: that appoints a fresh successor and hands the words on to it;
//   claimed entries that are not current: their retirement had begun (the successor is appointed first) and
//   is gone through
//     again, each step of it may be repeated;
//   standbys: the seat's standby from now on, or its holder, if the dead supervisor fell between the two
//   steps of its promotion
//     (standby.hpp);
//   FENCED entries whose epoch a word still bears: the reclaim behind the fence is missing.
// An adopter is no parent: it learns no exit status. What a stage has noted in its entry counts, else the
// death is one from outside.

#include <nlohmann/json_fwd.hpp>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

// ---- the rules

/// What an entry of the seat's is to a second supervisor.
enum class found_entry : u8 {
    unowned,  ///< unused, or fenced and free to be used again
    standby,
    current,   ///< the one that the seat names
    retiring,  ///< another: its retirement had begun
};
[[nodiscard]] found_entry what_is(const ring::entry_word& entry, bool named_by_seat, bool reusable) noexcept;

/// What becomes of a seat, whose state was `before`, without a living process on it.
struct vacancy_view {
    seat_state before = seat_state::starting;
    bool died_unjudged = false;  ///< a death that nobody has judged yet will decide
};
/// A successor is wanted unless the seat rests, or a death that nobody has judged yet will decide about it.
[[nodiscard]] bool successor_is_wanted(const vacancy_view& v) noexcept;
/// In such a state nobody is to be started.
[[nodiscard]] bool rests(seat_state s) noexcept;

// ---- carrying them out

struct found_processes {
    u32 alive = 0, dead = 0, standbys = 0;
};
/// Continues from what a dead supervisor has left: the control block's entries say which processes there are,
/// `state` (what state_json() gave last; may be null) what was counted and wanted. Retires the dead; starts
/// nobody before memory_is_there().
found_processes adopt_processes(process_table& t, const nlohmann::json& state, const std::string& run_id);
/// Seats whose process lives and has not presented itself yet.
[[nodiscard]] std::vector<const seat*> not_returned(const process_table& t);
/// What a stage has written while it had no reader. Not before it says that it writes elsewhere, or is dead:
/// what came behind the reading would be lost.
void read_alone(process_table& t, seat& s, i32 pid);

}  // namespace carousel::supervisor
