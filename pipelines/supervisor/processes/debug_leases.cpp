#include "supervisor/processes/debug_leases.hpp"

#include <fmt/format.h>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/watch.hpp"

namespace carousel::supervisor {

run::debug_answer begin_debugging(process_table& t, const run::debug_request& request, i32 by,
                                  debug_lease& lease) {
    const std::vector<seat*> all = t.find(request.stage);
    if (all.size() != 1)
        throw config_error(fmt::format("{} has {} instances: debug one of them, for example {}",
                                       request.stage, all.size(), all.front()->label));
    seat& s = *all.front();
    if (s.now && (s.now->port || s.now->elsewhere))
        throw config_error(fmt::format(
            "{} is a port: attach a debugger to its program, and give its reader or writer a longer timeout",
            s.label));
    if (!s.now || s.now->pid <= 0 || s.now->incarnation.epoch == 0 || is_doomed(*s.now))
        throw config_error(
            fmt::format("{} has no process to debug (it is {})", s.label, name_of(s.machine.state())));
    process& p = *s.now;
    if (request.pid != 0 && request.pid != p.pid)
        throw config_error(
            fmt::format("{} (pid {}) has been replaced by pid {}", s.label, request.pid, p.pid));
    ++p.debuggers;
    lease = {s.index, p.incarnation.epoch};
    t.log_line(
        fmt::format("{} (pid {}) is debugged (`carousel debug`, pid {}): no deadline counts for it until the "
                    "debugger ends",
                    s.label, p.pid, by));
    const bool cuda = t.setup->stages[s.stage].device_of(s.instance).kind == device::device_kind::cuda;
    return {"", s.label, p.pid, cuda, true};
}

void end_debugging(process_table& t, const debug_lease& lease) {
    if (!lease.is_held() || lease.seat >= t.seats.size()) return;
    seat& s = *t.seats[lease.seat];
    restart_clocks(t, now_ns());
    if (!s.now || s.now->incarnation.epoch != lease.epoch || s.now->debuggers == 0) return;
    --s.now->debuggers;
    t.log_line(
        fmt::format("{} (pid {}): the debugger has ended, and deadlines count again", s.label, s.now->pid));
}

}  // namespace carousel::supervisor
