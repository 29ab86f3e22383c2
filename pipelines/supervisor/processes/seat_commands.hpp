#pragma once
// User commands for a seat, and the end of the run. Each command returns what it did, or throws config_error.

#include "shm/injected_fault.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

std::string stop_seat(process_table& t, seat& s);
/// True if the seat was paused by `carousel stop`, or if its process was stopped by a SIGSTOP from outside.
[[nodiscard]] bool is_paused(const seat& s) noexcept;
/// Throws config_error if the seat is not paused.
std::string continue_seat(process_table& t, seat& s);
std::string kill_seat(process_table& t, seat& s, int signal);
/// Replaces the process by a new process, which runs the program that is now on disk; the predecessor's
/// frames are requeued, and none is lost.
std::string restart_seat(process_table& t, seat& s);
/// Makes the stage fail on demand. The death is blamed neither on the stage nor on the frame that it was
/// working on.
std::string inject_fault(process_table& t, seat& s, shm::injected_fault kind);
std::string take_seat_down(process_table& t, seat& s);
std::string bring_seat_up(process_table& t, seat& s);

/// Ends every process and starts none until resume_all(): in the meantime memory and words are rebuilt.
/// Programs of ports are not ended; they leave when they have committed the frame that they have, and a
/// program that does not is revoked. `words_intact`: no damage of the block's words is known.
/// `keep_standbys`: the standbys start over (start_over.hpp).
void pause_all(process_table& t, bool words_intact, bool keep_standbys);
/// `revive`: also restarts seats that have failed or are done, since a damaged block may have caused that.
void resume_all(process_table& t, bool revive);
void resume_paused(process_table& t);
void signal_all(process_table& t, int signal);

}  // namespace carousel::supervisor
