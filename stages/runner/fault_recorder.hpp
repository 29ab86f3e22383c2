#pragma once
// Records the stack of the thread that a fatal signal ends (run/fault_record.hpp). The signal handler stores
// numbers only; another process finds the names after the death.
//
// The handler allocates nothing and takes no lock, because the fault may be inside the allocator. The stack
// is walked by the unwinder of libgcc, which is called once at the start so that it is loaded. Modules are
// found by _dl_find_object(), which glibc documents as async-signal-safe. A walk of a damaged stack may fault
// again; the next call then continues with the next phase, and what was stored before stays. The handler's
// alarm ends a process whose recording takes longer than 2 s (exit_note.cpp).

#include <csignal>
#include <string>

#include "core/types.hpp"

namespace carousel::stages {

/// Makes the file of this process and maps it, so that the handler needs neither a descriptor nor space on
/// the disk. If that is not possible, faults are not recorded, and the log contains one line about it.
void open_fault_record(const std::string& runtime_directory, u32 entry);

/// Faults are not recorded any more until open_fault_record() is called for another entry.
void close_fault_record() noexcept;

/// To be called by the handler of a fatal signal, by one thread of the process. Async-signal-safe. If a fault
/// interrupts the call, the handler of that fault calls it again, and the record is continued.
void record_fault(int signal, const siginfo_t* from, const void* context) noexcept;

}  // namespace carousel::stages
