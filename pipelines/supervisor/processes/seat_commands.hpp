#pragma once
// What users ask of a seat, and the end of the run. Each command returns what it did, or throws config_error.

#include "shm/injected_fault.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

std::string stop_seat(process_table& t, seat& s);
/// Paused by `carousel stop`, or its process by a SIGSTOP from elsewhere.
[[nodiscard]] bool is_paused(const seat& s) noexcept;
/// Refuses a seat that is not paused.
std::string continue_seat(process_table& t, seat& s);
std::string kill_seat(process_table& t, seat& s, int signal);
/// The successor is the program that lies on the disk now; the predecessor's frames are thrown back, none is
/// lost.
std::string restart_seat(process_table& t, seat& s);
/// A faulty stage on demand. Its death is held neither against the stage nor against the frame that it had in
/// hand.
std::string inject_fault(process_table& t, seat& s, shm::injected_fault kind);
std::string take_seat_down(process_table& t, seat& s);
std::string bring_seat_up(process_table& t, seat& s);

/// Ends every process and starts none until resume_all(): memory and words are made anew meanwhile.
void pause_all(process_table& t);
/// `revive`: also the seats that have failed or are done, since a damaged block may have told them so.
void resume_all(process_table& t, bool revive);
void resume_paused(process_table& t);
void signal_all(process_table& t, int signal);

}  // namespace carousel::supervisor
