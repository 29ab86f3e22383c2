#include "supervisor/processes/abandoned_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/clock.hpp"
#include "os/spawn.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {

bool may_be_abandoned(const process_table& t, const seat& s, const process& p) noexcept {
    return t.device_failed && t.paused && !p.port && is_revoked(p) &&
           is_gpu(t.setup->stages[s.stage].device_of(s.instance)) && p.seen_dead_ns != 0 &&
           now_ns() - p.seen_dead_ns > lost_gpu_patience_ns;
}

bool abandon_unended(process_table& t) {
    bool none = true;
    for (auto& s : t.seats) {
        for (auto& p : s->gone) {
            if (p->port || (p->ended && !p->tool_pidfd)) continue;
            none = false;
            for (shm::unique_fd* fd : {&p->pidfd, &p->tool_pidfd}) {
                if (!*fd) continue;
                shm::signal_pidfd(fd->get(), SIGKILL);
                t.loop->forget(fd->get());
                const int number = fd->get();
                t.unreaped.push_back(std::move(*fd));
                t.loop->watch(number, EPOLLIN, [&t, number](u32) {
                    t.loop->forget(number);
                    (void)reap(number);
                    std::erase_if(t.unreaped, [&](const auto& each) { return each.get() == number; });
                });
            }
            if (p->log.fd() >= 0) {
                t.loop->forget(p->log.fd());
                p->log.close(*s->log, p->pid);
            }
            t.log_line(
                fmt::format("{} (pid {}) has not ended: its GPU does not end its work. The run continues in "
                            "other memory, "
                            "which that process does not map",
                            s->label, p->pid));
            p->ended = true;
        }
        std::erase_if(s->gone, [](const auto& p) { return p->ended && !p->port; });
    }
    return none;
}

}  // namespace carousel::supervisor
