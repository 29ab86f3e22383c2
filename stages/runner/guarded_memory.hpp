#pragma once
// Which addresses of this process belong to others and may only be read, or to nobody: so that the handler of
// a SIGSEGV can say into what the access was to go.
//
// Who may call: any thread; find_wild_write() also in a signal handler: it reads a table of fixed size and
// takes no lock. A row is written by the thread that took it, and is read once that has said that it is whole
// (release). Rows are never taken out: what is guarded stays mapped until the process ends.

#include "device/backend.hpp"
#include "ring/wild_write.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

/// The memory of a ring (`slots` of `slot_bytes` each) or of an asset (slot_bytes 0), as it is mapped here.
/// Does nothing for memory that the CPU can't reach, or of which it may write to every byte.
void guard(const device::mapping& memory, ring::wild_write_target what, u32 index, u64 slot_bytes,
           u32 slots) noexcept;

/// The frame segments of a run. Those of its own output fault only where a key closes them; the words of the
/// block are known by shm::guarded_block().
void guard_headers(const shm::control_block& c) noexcept;

/// What lies at `address`; wild_write_target::nothing: nothing that is guarded.
[[nodiscard]] ring::wild_write find_wild_write(const void* address) noexcept;

}  // namespace carousel::stages
