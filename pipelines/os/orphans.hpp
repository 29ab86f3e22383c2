#pragma once
// Children of this process: those that its own code starts and reaps, and orphans.
//
// The kernel gives processes whose parent has ended to PID 1 of the PID namespace, or to the nearest child
// subreaper. A supervisor that is either (the first process of a container, say) reaps them here, or their
// entries in the process table remain for the length of the run. The exit status of a child that other code
// waits for is never taken: all such children are noted when they start. Any thread may call.

#include <sys/types.h>

#include <functional>

#include "core/types.hpp"

namespace carousel::supervisor {

/// Calls `start`, which returns an error number (0: success) and sets `pid`, and notes the child. A child
/// that ends at once can't be taken for an orphan.
int start_child(pid_t& pid, const std::function<int()>& start);
/// The code that started the child has reaped it.
void forget_child(pid_t pid) noexcept;

/// Do orphans of other processes become children of this one?
[[nodiscard]] bool inherits_orphans() noexcept;
/// Reaps each child that has ended, that start_child() has not noted, and that is not `known`. Doesn't block.
/// Returns how many.
u32 reap_orphans(const std::function<bool(pid_t)>& known);

}  // namespace carousel::supervisor
