#pragma once
// Takes over the processes of a run from a dead supervisor, which may have been interrupted between any two
// of its steps. Only the control block is authoritative. For each seat there may be
//   - a process that occupies it (the seat's current entry, claimed): it continues; if it is dead by now, it
//     is retired as usual;
//   - a current entry that no process has claimed: it is withdrawn, so that a process that the dead
//     supervisor had just spawned finds no place, and it is retired as an entry without a process, which
//     appoints a fresh successor and passes the words on to that successor;
//   - claimed entries that are not current: their retirement had begun (the successor is appointed first) and
//     is carried out again; each step of it may be repeated;
//   - standbys: they become the seat's standby, or its holder if the dead supervisor died between the two
//     steps of the promotion (standby.hpp);
//   - FENCED entries whose epoch is still in a word: the reclaim after the fence was not carried out.
// The adopting supervisor is not the parent of these processes and gets no exit status. The note that a stage
// has left in its entry is authoritative; without a note the death counts as a death from outside.

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

// ---- decisions

/// The role in which the second supervisor finds an entry of the seat.
enum class found_entry : u8 {
    unowned,  ///< unused, or fenced and free for reuse
    standby,
    current,   ///< the entry that the seat names
    retiring,  ///< not the current entry: its retirement had begun
};
[[nodiscard]] found_entry what_is(const ring::entry_word& entry, bool named_by_seat, bool reusable) noexcept;

/// Facts about a seat that has no living process; `before`: the seat's last state.
struct vacancy_view {
    seat_state before = seat_state::starting;
    bool died_unjudged = false;  ///< a death is not judged yet; the verdict on that death will determine the
                                 ///< state
};
/// True if a successor must be started: the seat is not at rest, and none of its deaths remains to be judged.
[[nodiscard]] bool successor_is_wanted(const vacancy_view& v) noexcept;
/// True if the seat is at rest in this state: no process must be started for it.
[[nodiscard]] bool rests(seat_state s) noexcept;

// ---- carrying them out

struct found_processes {
    u32 alive = 0, dead = 0, standbys = 0;
};
/// Continues from the state that a dead supervisor has left. The entries of the control block determine the
/// processes that exist; `state` (the last result of state_json(), or null) has the counters and the pending
/// actions. Retires dead processes; starts none before memory_is_there().
found_processes adopt_processes(process_table& t, const nlohmann::json& state, const std::string& run_id);
/// Returns the generation of the MPS domain of an adopted process: as the dead supervisor knew it, or as the
/// process has published it; otherwise the serving one, or 0 for a standby.
[[nodiscard]] u32 adopted_generation(const process_table& t, const seat& s, const ring::incarnation_id& id,
                                     const std::vector<process_record>& remembered) noexcept;
/// Returns the seats whose process is alive and has not reconnected yet.
[[nodiscard]] std::vector<const seat*> not_returned(const process_table& t);
/// Logs the output that a stage wrote while no supervisor read it. To be called after the stage has reported
/// that it writes elsewhere, or has died: output written after the call would be lost.
void read_alone(process_table& t, seat& s, i32 pid);

// Entries that were damaged while a run had no supervisor: the supervisor that takes the run over determines
// the owner of each entry, or reports that it cannot.

/// Repairs each entry with one flipped bit (ring/check/repair.hpp) before the entry is used in any
/// other way. `remembered`: the processes that the dead supervisor knew. If the owner of an entry cannot be
/// determined, this is logged, and each process of this run that may be the owner is killed; the word is not
/// repaired, so the block is rebuilt.
void repair_adopted_entries(process_table& t, const process_records& remembered, const std::string& run_id);

/// Restores start times that differ from the time that the dead supervisor recorded for the process with that
/// entry, epoch and pid. Otherwise a living process that cannot be found by its start time would be treated
/// as dead.
void repair_start_times(process_table& t, const process_records& remembered);

}  // namespace carousel::supervisor
