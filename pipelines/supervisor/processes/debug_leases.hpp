#pragma once
// Suspends the deadlines of a process while `carousel debug` is attached to it. Called by the engine's
// thread. What a crash leaves: the lease is the connection of the debugger's command, so the kernel ends it
// with that command; a second supervisor knows nothing of it until the command requests it again.

#include <string>

#include "control/debug_message.hpp"
#include "core/types.hpp"

namespace carousel::supervisor {

struct process_table;

/// The process whose deadlines a connection suspends; epoch 0: none.
struct debug_lease {
    u32 seat = 0, epoch = 0;
    [[nodiscard]] bool is_held() const noexcept { return epoch != 0; }
};

/// Suspends the deadlines of the stage's process until end_debugging(). `by`: pid of the command, for the
/// log. Throws config_error if the stage has several instances or no process that can be debugged.
[[nodiscard]] run::debug_answer begin_debugging(process_table& t, const run::debug_request& request, i32 by,
                                                debug_lease& lease);
/// Deadlines count again from now on, those of the other stages, too, because they may have waited for this
/// one.
void end_debugging(process_table& t, const debug_lease& lease);

}  // namespace carousel::supervisor
