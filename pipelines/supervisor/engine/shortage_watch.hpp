#pragma once
// A shortage of descriptors, processes, threads or memory: connections that cannot be accepted, and starts
// that were postponed. A stage that waits to be accepted does not count as late. If no process can be started
// or accepted for shortage_patience_ns, the run ends and reports the cause.

#include <string>

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

class shortage_watch {
public:
    explicit shortage_watch(process_table& seats) : seats_(&seats) {}

    /// Called if a connecting process cannot be accepted; `error`: the errno.
    void accept_failed(int error, u64 now);
    /// Called in each tick. `accepts`: the control socket accepts connections. `ending`: the run ends.
    void tick(bool accepts, bool ending, u64 now);
    [[nodiscard]] bool is_short() const noexcept { return since_ns_ != 0; }

private:
    process_table* seats_;
    u64 since_ns_ = 0;     ///< 0: there is no shortage
    std::string newest_;   ///< the newest shortage: what failed, and the error
    bool logged_ = false;  ///< the present shortage of descriptors has been logged
};

}  // namespace carousel::supervisor
