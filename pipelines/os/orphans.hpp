#pragma once
// Children of this process: those that its own code starts and reaps, and orphans.
//
// The kernel reparents processes whose parent has ended to PID 1 of the PID namespace, or to the nearest
// child subreaper. A supervisor that has one of these roles (e.g. the first process of a container) reaps
// them here; otherwise their entries in the process table would remain for the length of the run. The exit
// status of a child that other code waits for is never taken: all such children are registered when they
// start. Any thread may call these functions. Any thread may call.

#include <sys/types.h>

#include <functional>

#include "core/types.hpp"

namespace carousel::supervisor {

/// Calls `start`, which returns an error number (0: success) and sets `pid`, and registers the child. A child
/// that ends at once cannot be mistaken for an orphan.
int start_child(pid_t& pid, const std::function<int()>& start);
/// The code that started the child has reaped it.
void forget_child(pid_t pid) noexcept;

/// Returns true if orphans of other processes become children of this one.
[[nodiscard]] bool inherits_orphans() noexcept;
/// Reaps each ended child that start_child() has not registered and that is not `known`. Doesn't block.
/// Returns the number of reaped children.
u32 reap_orphans(const std::function<bool(pid_t)>& known);

}  // namespace carousel::supervisor
