#include "supervisor/processes/abandoned_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "os/spawn.hpp"
#include "shm/process_id.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/retire.hpp"

namespace carousel::supervisor {
namespace {

bool is_unended(const process& p) noexcept { return !p.port && (!p.ended || p.tool_pidfd); }

void abandon(process_table& t, seat& s, process& p) {
    for (shm::unique_fd* fd : {&p.pidfd, &p.tool_pidfd}) {
        if (!*fd) continue;
        shm::signal_pidfd(fd->get(), SIGKILL);
        t.loop->forget(fd->get());
        const int number = fd->get();
        t.abandoned_pidfds.push_back(std::move(*fd));
        t.loop->watch(number, EPOLLIN, [&t, number](u32) {
            t.loop->forget(number);
            (void)reap(number);
            std::erase_if(t.abandoned_pidfds, [&](const auto& each) { return each.get() == number; });
        });
    }
    if (p.log.fd() >= 0) {
        t.loop->forget(p.log.fd());
        p.log.close(*s.log, p.pid);
    }
    t.log_line(fmt::format(
        "{} (pid {}) has not ended: its GPU does not end its work. The run continues in other memory, which "
        "that process does not map",
        s.label, p.pid));
    p.ended = true;
}

}  // namespace

bool may_be_abandoned(const process_table& t, const process& p) noexcept {
    if (!t.may_leave_gpu || !t.paused || t.ending || p.port || !p.on_gpu) return false;
    // A standby owns no word, so it need not be revoked.
    const bool powerless = p.incarnation.epoch == 0 ? p.kill_sent : is_revoked(p);
    const u64 since = p.seen_dead_ns != 0 ? std::max(p.seen_dead_ns, t.paused_ns) : t.paused_ns;
    return powerless && now_ns() - std::min(now_ns(), since) >
                            (t.device_failed ? failed_gpu_timeout_ns : gpu_exit_timeout_ns);
}

bool has_unended(const process_table& t) noexcept {
    return std::any_of(t.seats.begin(), t.seats.end(), [&](const auto& s) {
        if (s->standby && !s->standby->has_detached) return true;
        return std::any_of(s->gone.begin(), s->gone.end(), [&](const auto& p) {
            return !p->port && (is_unended(*p) || !fence_is_known(t, *p));
        });
    });
}

void abandon_unended(process_table& t) {
    for (auto& s : t.seats) {
        for (auto& p : s->gone)
            if (is_unended(*p)) abandon(t, *s, *p);
        std::erase_if(s->gone, [](const auto& p) { return p->ended && !p->port; });
        if (!s->standby || s->standby->has_detached) continue;
        abandon(t, *s, *s->standby);
        s->standby.reset();
    }
}

}  // namespace carousel::supervisor
