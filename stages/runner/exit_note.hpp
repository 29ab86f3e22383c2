#pragma once
// The note that a dying stage leaves in its incarnation entry. The supervisor reads the note as soon as it
// detects the death, long before a zombie with a GPU context can be reaped. A death without a note counts as
// caused from outside.

#include <functional>

#include "shm/control_block.hpp"

namespace carousel::stages {

/// Installs handlers for the signals that a process causes itself (SEGV, BUS, FPE, ILL, ABRT, TRAP, SYS):
/// they store the note (for a write into guarded memory also its target) and let the signal take its default
/// action. Also notes exit(n) in the stage's own code. Ignores SIGPIPE and SIGHUP.
void install_exit_note(shm::incarnation& entry) noexcept;
/// Stores the target of a write of this process (ring/exit_notes.hpp). Async-signal-safe. The first one is
/// kept.
void note_wild_write(u64 packed) noexcept;
/// Stores the note and ends the process at once, without destructors: a normal exit can hang on a stuck
/// stream.
[[noreturn]] void die(int code) noexcept;
/// Runs `work`. Logs an exception that it throws and exits with the connection still open: a supervisor that
/// finds the connection closed before there is a note would kill a client of an MPS domain without knowing
/// the reason for its exit.
void with_exit_note(const std::function<void()>& work);
/// From here on exit(0) is the planned exit.
void expect_exit() noexcept;

}  // namespace carousel::stages
