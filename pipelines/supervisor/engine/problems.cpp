#include "supervisor/engine/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/descriptors.hpp"
#include "ring/words.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/watch.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr u64 check_every_ns = 250 * ns_per_ms, patience_ns = ns_per_s, fence_patience_ns = 2 * ns_per_s;
constexpr std::size_t most = 100;
constexpr u64 shown_ns = 60 * ns_per_s;

struct slots {
    u32 quarantined = 0, free = 0;
};
/// Counts slots of the rings that the stage writes. `quarantined`: the slots that `seat` has in quarantine;
/// if `seat` is none, those of all seats. `free`: the number of free slots of the ring that has the fewest
/// free slots.
slots slots_of(const shm::control_block& c, u32 stage, u32 seat) {
    slots n;
    for (u32 o = 0; o < std::min(c.stage[stage].outputs, shm::max_outputs); ++o) {
        const u32 link = c.stage[stage].output_link[o];
        if (link >= shm::max_links) continue;
        u32 free = 0;
        for (u32 k = 0; k < std::min(c.link[link].slots, shm::max_slots); ++k) {
            const ring::slot_word w = ring::slot_word::of(ring::load(c.link[link].slot[k]));
            free += w.state == ring::slot_state::free ? 1 : 0;
            const bool its = seat == shm::none || (w.job >= c.seat[seat].first_job &&
                                                   w.job - c.seat[seat].first_job < c.seat[seat].jobs);
            n.quarantined += w.state == ring::slot_state::quarantined && its ? 1 : 0;
        }
        n.free = o == 0 ? free : std::min(n.free, free);
    }
    return n;
}

void unfenced(std::vector<problem>& out, const shm::control_block& c, const seat& s, u64 now) {
    for (const auto& l : s.gone) {
        if (l->ended || l->pid <= 0 || l->how.through || now < l->seen_dead_ns + fence_patience_ns) continue;
        const u32 quarantined = slots_of(c, s.stage, s.index).quarantined;
        out.push_back(
            {fmt::format("unfenced {}", l->pid),
             fmt::format("{}: pid {} was replaced but has not ended ({}); {}", s.label, l->pid,
                         l->port ? "the program at a port is not killed, and it still maps the ring"
                                 : "it may be blocked in the kernel",
                         quarantined > 0
                             ? fmt::format("{} of its buffers stay in quarantine until it ends", quarantined)
                             : "it holds no buffer"),
             now});
    }
}

/// Returns the reason why no process of a stage works, as one sentence; "": a process works, or will soon.
std::string absence(const run_setup& setup, const seat_list& seats, u32 stage) {
    std::optional<seat_state> why;
    for (const auto& s : seats) {
        if (s->stage != stage) continue;
        const seat_state state = s->machine.paused() ? seat_state::stopped : s->machine.state();
        if (state != seat_state::down && state != seat_state::failed && state != seat_state::stopped &&
            state != seat_state::vacant)
            return "";
        // A state other than `failed` has priority, because frames wait for the instances that have not
        // failed.
        if (!why || state != seat_state::failed) why = state;
    }
    const stage_spec& spec = setup.stages[stage].spec;
    if (!why || spec.may_miss()) return "";
    if (is_absent(setup, seats, stage))
        return fmt::format("{} has failed and is skipped (optional = true) until `carousel up {}`", spec.name,
                           spec.name);
    const std::string until = *why == seat_state::vacant    ? "a program opens the port"
                              : *why == seat_state::stopped ? fmt::format("`carousel cont {}`", spec.name)
                                                            : fmt::format("`carousel up {}`", spec.name);
    return fmt::format("{} is {}: {} until {}", spec.name,
                       *why == seat_state::stopped ? "paused" : name_of(*why),
                       spec.input_indices.empty() ? "no new frame is produced"
                                                  : "upstream stages block when their rings are full",
                       until);
}

std::vector<problem> find_problems(const run_setup& setup, const shm::control_block& c,
                                   const seat_list& seats, u64 now) {
    std::vector<problem> out;
    for (const auto& s : seats) {
        unfenced(out, c, *s, now);
        if (full_disk_since_ns(c, *s) != 0)
            out.push_back({"disk " + s->label,
                           fmt::format("{} waits for space on a full disk (named in its log): no frame is "
                                       "lost, and it continues when there is space",
                                       s->label),
                           now});
        if (s->machine.state() == seat_state::backoff)
            out.push_back({"backoff " + s->label,
                           fmt::format("{} dies before it delivers a frame ({}; {} in a row), so it is "
                                       "restarted with increasing delays",
                                       s->label, s->last_exit, s->machine.fresh_deaths()),
                           now});
    }
    for (u32 k = 0; k < setup.stages.size(); ++k) {
        const std::string& name = setup.stages[k].spec.name;
        if (const slots n = slots_of(c, k, shm::none); n.free == 0 && n.quarantined > 0)
            out.push_back(
                {"quarantine " + name,
                 fmt::format("{}: no buffer of its ring is free, and {} are in quarantine: the stage waits "
                             "until the processes that wrote to these buffers have ended",
                             name, n.quarantined),
                 now});
        if (std::string why = absence(setup, seats, k); !why.empty())
            out.push_back({"unserved " + name, std::move(why), now});
    }
    return out;
}

constexpr u64 shortage_over_ns = ns_per_s;

}  // namespace

std::vector<std::string> problems::tick(const run_setup& s, const shm::control_block& c,
                                        const seat_list& seats, u64 now) {
    if (now < checked_ns_ + check_every_ns) return {};
    checked_ns_ = now;
    std::vector<std::string> fresh;
    std::vector<problem> seen = find_problems(s, c, seats, now);
    for (problem& p : seen) {
        const auto before =
            std::find_if(now_.begin(), now_.end(), [&](const problem& o) { return o.key == p.key; });
        if (before != now_.end()) {
            p.since_ns = before->since_ns;
            p.logged = before->logged;
        }
        if (p.logged || now - p.since_ns < patience_ns) continue;
        p.logged = true;
        fresh.push_back(p.text);
    }
    for (problem& p : now_) {
        const bool over =
            std::none_of(seen.begin(), seen.end(), [&](const problem& o) { return o.key == p.key; });
        if (!over || !p.logged || past_.size() >= most) continue;
        p.over_ns = now;
        past_.push_back(std::move(p));
    }
    now_ = std::move(seen);
    return fresh;
}

void problems::report(const std::string& text, u64 now) {
    problem p{"reported", text, now, now, true};
    if (past_.size() < most) past_.push_back(p);
    std::erase_if(reported_, [&](const problem& o) { return now > o.since_ns + shown_ns; });
    if (reported_.size() < most) reported_.push_back(std::move(p));
}

json problems::present(u64 now) const {
    json out = json::array();
    for (const problem& p : reported_)
        if (now < p.since_ns + shown_ns) out.push_back(p.text);
    for (const problem& p : now_)
        if (p.logged) out.push_back(p.text);
    return out;
}

json problems::all(u64 begin_ns) const {
    json out = json::array();
    const auto add = [&](const problem& p) {
        const auto seconds = [](u64 ns) { return static_cast<f64>(ns) / 1e9; };
        out.push_back({{"text", p.text},
                       {"at_s", seconds(p.since_ns - std::min(begin_ns, p.since_ns))},
                       {"lasted_s", p.over_ns != 0 ? json(seconds(p.over_ns - p.since_ns)) : json()}});
    };
    for (const problem& p : past_) add(p);
    for (const problem& p : now_)
        if (p.logged && out.size() < most) add(p);
    return out;
}

void shortage_watch::accept_failed(int error, u64 now) {
    if (since_ns_ == 0) since_ns_ = now;
    newest_ = "cannot accept a connecting process: " + no_file_text(error);
    if (logged_) return;  // logged once per shortage, even if the shortage has several signs
    logged_ = true;
    seats_->log_line(fmt::format("cannot accept a connecting process yet: {}", no_file_text(error)));
}

void shortage_watch::tick(bool accepts, bool ending, u64 now) {
    for (const auto& s : seats_->seats) {
        if (!s->start_short) continue;
        if (since_ns_ == 0) since_ns_ = now;
        newest_ = s->shortage;
    }
    if (since_ns_ == 0) return;
    // After a process has ended because it got no thread, the shortage counts as over only when the successor
    // of that process has run for a while.
    const auto waits = [&](const auto& s) {
        if (s->start_short || !s->now) return s->start_short;
        if (s->machine.state() == seat_state::starting) return s->now->connection < 0 || !s->shortage.empty();
        return !s->shortage.empty() && now < s->machine.since_ns() + shortage_over_ns;
    };
    if (std::none_of(seats_->seats.begin(), seats_->seats.end(), waits)) {
        if (accepts && now - since_ns_ > shortage_over_ns) {
            since_ns_ = 0;
            logged_ = false;
            for (const auto& s : seats_->seats) s->shortage.clear();
        }
        return;
    }
    if (now - since_ns_ < shortage_patience_ns || seats_->failure || ending) return;
    seats_->fail(
        "carousel",
        fmt::format("no stage could start within {} s: {}", shortage_patience_ns / ns_per_s, newest_),
        exit_code::shared_memory);
}

}  // namespace carousel::supervisor
