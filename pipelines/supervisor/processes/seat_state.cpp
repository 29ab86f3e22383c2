#include "supervisor/processes/seat_state.hpp"

#include <algorithm>

#include "core/clock.hpp"

namespace carousel::supervisor {

BOOST_DESCRIBE_STRUCT(root_cause, (), (label, what, exit_code, last_lines))
BOOST_DESCRIBE_STRUCT(tombstone_frame, (), (ring_sequence, stage, reason))
BOOST_DESCRIBE_STRUCT(death_account, (),
                      (kills_at, deaths, restarts, promoted, no_standby, domain_faults, domain_abandoned,
                       domain_ends, domain_restored, abandoned_before, abandoned))
BOOST_DESCRIBE_STRUCT(mps_trial, (), (on_trial, blamed))

namespace {

using nlohmann::json;

template <typename T>
json last_of(const std::vector<T>& all, std::size_t most) {
    return json(
        std::vector<T>(all.end() - static_cast<std::ptrdiff_t>(std::min(most, all.size())), all.end()));
}

process_record record_of(const process& p) {
    return {p.incarnation.entry, p.incarnation.epoch, p.pid,         p.start_time,  p.spawned_ns,
            p.signalled_ns,      p.seen_dead_ns,      p.user_signal, p.by_hand,     p.tool,
            p.by_supervisor,     p.counted,           p.judged,      p.how.outside, p.how.restart_requested,
            p.how.deadline,      p.how.was_ready};
}

json seat_json(const seat& s) {
    std::vector<process_record> processes;
    if (s.now) processes.push_back(record_of(*s.now));
    for (const auto& p : s.gone) processes.push_back(record_of(*p));
    if (s.standby) processes.push_back(record_of(*s.standby));  // saved in case its entry is damaged later
    return {{"label", s.label},
            {"state", static_cast<int>(s.machine.state())},
            {"since_ns", s.machine.since_ns()},
            {"fresh_deaths", s.machine.fresh_deaths()},
            {"proven", s.machine.proven()},
            {"start_wanted", s.start_wanted},
            {"due_ns", s.due_ns},
            {"pids", last_of(s.pids, seat::kept_pids)},
            {"restarts", s.restarts},
            {"last_exit", s.last_exit},
            {"processes", processes}};
}

void mix(u64& sum, u64 value) noexcept { sum = (sum ^ value) * 0x100'0000'01b3ULL; }

void mix_process(u64& sum, const process& p) noexcept {
    mix(sum, u64{p.incarnation.entry} << 32U | p.incarnation.epoch);
    const bool flags[] = {p.by_supervisor, p.counted,       p.judged, p.how.outside, p.how.restart_requested,
                          p.how.deadline,  p.how.was_ready, p.tool,   p.ended};
    for (const bool f : flags) mix(sum, f ? 1 : 2);
    mix(sum, static_cast<u64>(p.pid) << 32U | static_cast<u32>(p.user_signal));
    mix(sum, p.signalled_ns);
}

}  // namespace

u64 fingerprint(const process_table& t) noexcept {
    u64 sum = 0xcbf2'9ce4'8422'2325ULL;
    for (const auto& s : t.seats) {
        mix(sum, static_cast<u64>(s->machine.state()) << 8U | s->machine.fresh_deaths());
        mix(sum, s->machine.since_ns());
        mix(sum, u64{s->restarts} << 32U | s->pids.size());
        mix(sum, s->start_wanted ? s->due_ns + 1 : 0);
        if (s->now) mix_process(sum, *s->now);
        for (const auto& p : s->gone) mix_process(sum, *p);
        if (s->standby) mix_process(sum, *s->standby);
    }
    mix(sum, t.account.deaths);
    mix(sum, t.account.restarts);
    mix(sum, t.account.promoted);
    for (const u64 n : t.account.no_standby) mix(sum, n);
    mix(sum, t.account.domain_faults << 1U | (t.account.domain_abandoned ? 1U : 0U));
    mix(sum, t.account.domain_ends << 1U | (t.account.domain_restored ? 1U : 0U));
    mix(sum, u64{t.trial.on_trial} << 32U | t.trial.blamed.size());
    mix(sum, (t.account.abandoned_before + t.account.abandoned.size()) << 1U | (t.failure ? 1U : 0U));
    return sum;
}

json state_json(const process_table& t) {
    json seats = json::array(), account = t.account;
    for (const auto& s : t.seats) seats.push_back(seat_json(*s));
    account.update(json(t.trial));
    return {{"seats", seats}, {"failure", t.failure}, {"account", account}};
}

process_records restore_state(process_table& t, const json& state) {
    const json& seats = state.at("seats");
    process_records remembered;
    for (std::size_t k = 0; k < t.seats.size() && k < seats.size(); ++k) {
        const json& j = seats[k];
        seat& s = *t.seats[k];
        s.machine.resume(static_cast<seat_state>(
                             std::clamp(j.at("state").get<int>(), 0, static_cast<int>(seat_state::vacant))),
                         j.at("since_ns"), j.at("fresh_deaths"), j.value("proven", false));
        s.start_wanted = j.at("start_wanted");
        s.due_ns = j.at("due_ns");
        s.pids = j.at("pids").get<std::vector<i32>>();
        s.restarts = j.at("restarts");
        s.last_exit = j.at("last_exit");
        j.at("processes").get_to(remembered.emplace_back());
    }
    const json& a = state.at("account");
    a.get_to(t.account);
    a.get_to(t.trial);
    t.account.domain_blamed = t.trial.blamed;
    if (t.trial.in_progress() && t.trial.on_trial >= t.setup->stages.size()) t.trial.on_trial = shm::none;
    state.at("failure").get_to(t.failure);
    return remembered;
}

}  // namespace carousel::supervisor
