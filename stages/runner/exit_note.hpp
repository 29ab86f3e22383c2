#pragma once
// What a dying stage can still say: a note in its incarnation entry, which the supervisor reads the moment it
// sees the death, long before a zombie with a GPU context can be reaped. A death without a note counts as one
// from outside.

#include <functional>

#include "shm/control_block.hpp"

namespace carousel::stages {

/// Installs handlers for the signals that a process brings upon itself (SEGV, BUS, FPE, ILL, ABRT, TRAP,
/// SYS): they store the note (of a write into guarded memory also where to) and let the signal take its
/// course. Also notes exit(n) of a stage's own code.
/// SIGPIPE and SIGHUP are ignored.
void install_exit_note(shm::incarnation& entry) noexcept;
/// Stores where a write of this process was to go (ring/wild_write.hpp). Async-signal-safe. The first one
/// stands.
void note_wild_write(u64 packed) noexcept;
/// Stores the note and ends the process at once, with no destructors: an ordinary exit can hang behind a
/// stuck stream.
[[noreturn]] void die(int code) noexcept;
/// Says what `work` throws and dies of it, with the connection still open: a supervisor that sees it closed
/// before there is a note kills a client of an MPS domain without knowing why it left.
void with_exit_note(const std::function<void()>& work);
/// From here on an exit(0) is the planned one.
void expect_exit() noexcept;

}  // namespace carousel::stages
