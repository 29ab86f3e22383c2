#include "supervisor/processes/start_over.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "spec/programs.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/standby.hpp"

namespace carousel::supervisor {
namespace {

/// How long the rebuild waits for standbys after all other processes have ended.
constexpr u64 detach_patience_ns = 250 * ns_per_ms;
/// Until then the first frames after a rebuild have passed all stages of most pipelines.
constexpr u64 standby_pause_ns = ns_per_s;

}  // namespace

bool request_start_over(process_table& t, seat& s) {
    const stage_setup& st = t.setup->stages[s.stage];
    const process* const p = s.standby.get();
    if (p == nullptr || !p->standing_by || p->connection < 0 || p->kill_sent || is_under_tool(*p) ||
        p->mps.generation != 0 || wants_domain(t, s) || st.forwards_frames || !st.spec.standby ||
        is_python(st.spec.run))
        return false;
    const std::string text = write_message(run::start_over_message{}).dump();
    s.standby->starts_over = shm::send_message(p->connection, text);
    return s.standby->starts_over;
}

void standby_detached(process_table& t, int connection) {
    for (auto& s : t.seats)
        if (s->standby && s->standby->connection == connection && s->standby->starts_over)
            s->standby->has_detached = true;
}

void watch_detaching(process_table& t, u64 now) {
    if (!t.paused || t.ending || !t.holders_gone()) return;
    if (t.holders_gone_ns == 0) t.holders_gone_ns = now;
    if (now - std::min(now, t.groups.uncounted().shifted(t.holders_gone_ns, now)) < detach_patience_ns)
        return;
    for (auto& s : t.seats) {
        if (!s->standby || s->standby->has_detached || s->standby->kill_sent) continue;
        t.log_line(fmt::format(
            "{}'s standby (pid {}) has not left the old control block within {} ms, so it is ended", s->label,
            s->standby->pid, detach_patience_ns / ns_per_ms));
        end_standby(*s);
    }
}

std::unique_ptr<process> take_detached(process_table& t, seat& s) {
    // its end may not have been handled yet
    if (!s.standby || !s.standby->has_detached || s.standby->kill_sent || s.standby->connection < 0 ||
        wants_domain(t, s) || shm::has_ended(s.standby->pidfd.get()))
        return nullptr;
    std::unique_ptr<process> p = std::move(s.standby);
    p->starts_over = p->has_detached = p->standing_by = false;
    p->how = {};
    return p;
}

void end_start_over(process_table& t) {
    const u64 due = now_ns() + standby_pause_ns;
    for (auto& s : t.seats) {
        s->standby_due_ns = std::max(s->standby_due_ns, due);
        end_standby(*s);
    }
}

}  // namespace carousel::supervisor
