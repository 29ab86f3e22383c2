#include "seat_model.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include <fmt/format.h>

namespace carousel::model {
namespace {

constexpr int processes = 4;
constexpr i8 no_process = -1;
enum class phase : i8 { not_born, started, working, gone, standby };

struct process {
    i8 epoch = no_process;
    phase is = phase::not_born;
    auto operator<=>(const process&) const = default;
};
struct supervisor {
    // at 3: a promotion, between its two CASes
    i8 at = 0, epoch_seen = 0, holder_seen = no_process, child = no_process;
    auto operator<=>(const supervisor&) const = default;
};
struct seat_state {
    i8 epoch = 0, holder = no_process;
    std::array<process, processes> all{};
    supervisor boss{};
    i8 deaths = 0, boss_deaths = 0;
    auto operator<=>(const seat_state&) const = default;
};

using step = std::pair<std::string, seat_state>;

void supervisor_steps(const seat_setup& c, const seat_state& s, std::vector<step>& out) {
    const supervisor& b = s.boss;
    const auto add = [&](std::string what, auto&& by) {
        seat_state t = s;
        by(t);
        out.emplace_back(std::move(what), t);
    };
    if (b.at == 0) {
        bool served = s.holder >= 0 && s.all[s.holder].is == phase::working;
        if (!c.claim_first) {  // then it knows only the processes that it has spawned itself
            served = b.child >= 0 && std::any_of(s.all.begin(), s.all.end(), [&](const process& p) {
                         return p.is == phase::working && p.epoch == s.epoch;
                     });
        }
        const bool waits = b.child >= 0 && s.all[b.child].is == phase::started;
        for (i8 k = 0; k < processes && !served && !waits; ++k) {
            if (s.all[k].is != phase::standby || s.all[k].epoch != no_process) continue;
            add(fmt::format("promote({})", k), [&](seat_state& t) {
                if (c.seat_first) {
                    ++t.epoch;
                    t.holder = k;
                } else {
                    t.all[k].epoch = static_cast<i8>(s.epoch + 1);
                }
                t.boss = {3, static_cast<i8>(s.epoch + 1), no_process, k};
            });
        }
        if (!served && !waits)
            add("look", [&](seat_state& t) {
                t.boss = {static_cast<i8>(c.raise_epoch ? 1 : 2), s.epoch, s.holder, no_process};
            });
    } else if (b.at == 1) {
        if (s.epoch == b.epoch_seen && s.holder == b.holder_seen) {
            add("raise", [&](seat_state& t) {
                ++t.epoch;
                t.holder = no_process;
                t.boss = {2, t.epoch, no_process, no_process};
            });
        } else {
            add("raise-failed", [&](seat_state& t) { t.boss = {0, 0, no_process, b.child}; });
        }
    } else if (b.at == 3) {
        add("promoted", [&](seat_state& t) {
            if (c.seat_first) {
                if (t.all[b.child].is == phase::standby) t.all[b.child].epoch = b.epoch_seen;
            } else {
                t.epoch = b.epoch_seen;
                t.holder = b.child;
            }
            t.boss = {};
        });
    } else {
        for (i8 k = 0; k < processes; ++k) {
            if (s.all[k].is != phase::not_born) continue;
            add(fmt::format("spawn({})", k), [&](seat_state& t) {
                t.all[k] = {b.epoch_seen, c.claim_first ? phase::started : phase::working};
                t.boss = {0, 0, no_process, k};
            });
            break;
        }
    }
    if (s.boss_deaths < c.supervisor_deaths) {
        add("supervisor-dies", [&](seat_state& t) {
            t.boss = {};
            ++t.boss_deaths;
        });
    }
}

void process_steps(const seat_setup& c, const seat_state& s, std::vector<step>& out) {
    for (i8 k = 0; k < processes; ++k) {
        const process& p = s.all[k];
        if (p.is == phase::started) {
            seat_state t = s;
            if (s.epoch == p.epoch && s.holder < 0) {
                t.holder = k;
                t.all[k].is = phase::working;
                out.emplace_back(fmt::format("claim({})", k), t);
            } else {
                t.all[k].is = phase::gone;
                out.emplace_back(fmt::format("lost({})", k), t);
            }
        }
        if (p.is == phase::standby && p.epoch != no_process && s.holder == k && s.epoch == p.epoch) {
            seat_state t = s;
            t.all[k].is = phase::working;
            out.emplace_back(fmt::format("wakes({})", k), t);
        }
        if ((p.is == phase::started || p.is == phase::working || p.is == phase::standby) &&
            s.deaths < c.deaths) {
            seat_state t = s;
            t.all[k].is = phase::gone;
            ++t.deaths;
            out.emplace_back(fmt::format("die({})", k), t);
        }
    }
}

bool two_work(const seat_state& s) {
    for (int a = 0; a < processes; ++a)
        for (int b = a + 1; b < processes; ++b)
            if (s.all[a].is == phase::working && s.all[b].is == phase::working &&
                s.all[a].epoch == s.all[b].epoch)
                return true;
    return false;
}

// An exited process keeps its entry until it is fenced, so it counts as well.
bool one_epoch_twice(const seat_state& s) {
    for (int a = 0; a < processes; ++a)
        for (int b = a + 1; b < processes; ++b)
            if (s.all[a].epoch != no_process && s.all[a].epoch == s.all[b].epoch &&
                (s.all[a].is == phase::standby || s.all[b].is == phase::standby))
                return true;
    return false;
}

bool never_occupied(const seat_state& s, const std::vector<step>& next) {
    const auto is = [&](phase what) {
        return std::any_of(s.all.begin(), s.all.end(), [&](const process& p) { return p.is == what; });
    };
    return next.empty() && !is(phase::working) && is(phase::not_born);
}

}  // namespace

seat_result explore_seat(const seat_setup& c) {
    std::map<seat_state, std::pair<seat_state, std::string>> seen;
    seat_state first;
    if (c.standby) first.all[processes - 1].is = phase::standby;
    std::deque<seat_state> open{first};
    seen.emplace(open.front(), std::pair{open.front(), std::string()});
    seat_result r;
    while (!open.empty() && !r.two_workers && !r.no_process && !r.shared_epoch) {
        const seat_state s = open.front();
        open.pop_front();
        std::vector<step> next;
        supervisor_steps(c, s, next);
        process_steps(c, s, next);
        r.two_workers = two_work(s);
        r.no_process = never_occupied(s, next);
        r.shared_epoch = one_epoch_twice(s);
        if (r.two_workers || r.no_process || r.shared_epoch) {
            for (const seat_state* at = &s; !seen.at(*at).second.empty(); at = &seen.at(*at).first)
                r.trace.push_back(seen.at(*at).second);
            std::reverse(r.trace.begin(), r.trace.end());
        }
        for (step& t : next)
            if (seen.emplace(t.second, std::pair{s, t.first}).second) open.push_back(t.second);
    }
    r.states = seen.size();
    return r;
}

}  // namespace carousel::model
