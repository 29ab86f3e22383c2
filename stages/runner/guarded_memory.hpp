#pragma once
// Records which addresses of this process are read-only because they belong to others, or are gaps, so that
// the SIGSEGV handler can report the target of the access.
//
// Threads: any; find_wild_write() also in a signal handler, because it reads a table of fixed size and takes
// no lock. A row is written by the thread that claimed it, and is read only after its flag marks it as
// complete (release). Rows are never removed: guarded memory stays mapped until the process ends.

#include "device/backend.hpp"
#include "ring/exit_notes.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

/// Registers the memory of a ring (`slots` of `slot_bytes` each) or of an asset (slot_bytes 0), as mapped in
/// this process. Does nothing for memory that the CPU cannot access, or in which it may write to every byte.
void guard(const device::mapping& memory, ring::wild_write_target what, u32 index, u64 slot_bytes,
           u32 slots) noexcept;

/// Registers the frame segments of a run. Headers of the stage's own outputs fault only if a key closes them;
/// the words of the block are known from shm::guarded_block().
void guard_headers(const shm::control_block& c) noexcept;

/// Returns the object at `address`; wild_write_target::nothing if it is not guarded.
[[nodiscard]] ring::wild_write find_wild_write(const void* address) noexcept;

}  // namespace carousel::stages
