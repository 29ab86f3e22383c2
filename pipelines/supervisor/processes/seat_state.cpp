#include "supervisor/processes/seat_state.hpp"

#include <algorithm>

#include "core/clock.hpp"
#include "core/json.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

template <typename T>
json last_of(const std::vector<T>& all, std::size_t most) {
    return json(
        std::vector<T>(all.end() - static_cast<std::ptrdiff_t>(std::min(most, all.size())), all.end()));
}

json process_json(const process& p) {
    return {{"entry", p.incarnation.entry},
            {"epoch", p.incarnation.epoch},
            {"pid", p.pid},
            {"start_time", p.start_time},
            {"by_hand", p.by_hand},
            {"tool", p.tool},
            {"spawned_ns", p.spawned_ns},
            {"signalled_ns", p.signalled_ns},
            {"seen_dead_ns", p.seen_dead_ns},
            {"user_signal", p.user_signal},
            {"by_us", p.by_supervisor},
            {"counted", p.counted},
            {"judged", p.judged},
            {"outside", p.how.outside},
            {"restart_requested", p.how.restart_requested},
            {"deadline", p.how.deadline},
            {"was_ready", p.how.was_ready}};
}

process_record read_process(const json& j) {
    process_record p;
    p.entry = j.value("entry", p.entry);
    p.epoch = j.value("epoch", p.epoch);
    p.pid = j.value("pid", p.pid);
    p.start_time = j.value("start_time", p.start_time);
    p.by_hand = j.value("by_hand", false);
    p.tool = j.value("tool", false);
    p.spawned_ns = j.value("spawned_ns", p.spawned_ns);
    p.signalled_ns = j.value("signalled_ns", p.signalled_ns);
    p.seen_dead_ns = j.value("seen_dead_ns", p.seen_dead_ns);
    p.user_signal = j.value("user_signal", 0);
    p.by_supervisor = j.value("by_us", false);
    p.counted = j.value("counted", false);
    p.judged = j.value("judged", false);
    p.outside = j.value("outside", false);
    p.restart_requested = j.value("restart_requested", false);
    p.deadline = j.value("deadline", false);
    p.was_ready = j.value("was_ready", false);
    return p;
}

json seat_json(const seat& s) {
    json processes = json::array();
    if (s.now) processes.push_back(process_json(*s.now));
    for (const auto& p : s.gone) processes.push_back(process_json(*p));
    if (s.standby) processes.push_back(process_json(*s.standby));  // saved in case its entry is damaged later
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
    json seats = json::array(), abandoned = json::array(), failure;
    for (const auto& s : t.seats) seats.push_back(seat_json(*s));
    for (const tombstone_frame& v : t.account.abandoned)
        abandoned.push_back({{"ring_sequence", v.ring_sequence}, {"stage", v.stage}, {"reason", v.reason}});
    if (t.failure)
        failure = {{"label", t.failure->label},
                   {"what", t.failure->what},
                   {"exit_code", t.failure->exit_code},
                   {"last_lines", t.failure->last_lines}};
    return {{"seats", seats},
            {"failure", failure},
            {"account",
             {{"kills_at", t.account.kills_at},
              {"deaths", t.account.deaths},
              {"restarts", t.account.restarts},
              {"promoted", t.account.promoted},
              {"no_standby", t.account.no_standby},
              {"domain_faults", t.account.domain_faults},
              {"domain_abandoned", t.account.domain_abandoned},
              {"domain_ends", t.account.domain_ends},
              {"domain_restored", t.account.domain_restored},
              {"on_trial", t.trial.on_trial},
              {"blamed", t.trial.blamed},
              {"abandoned_before", t.account.abandoned_before},
              {"abandoned", abandoned}}}};
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
        for (std::vector<process_record>& of_seat = remembered.emplace_back();
             const json& p : j.at("processes"))
            of_seat.push_back(read_process(p));
    }
    const json& a = state.at("account");
    for (std::size_t k = 0; k < std::size(t.account.kills_at); ++k)
        t.account.kills_at[k] = a.at("kills_at").at(k);
    t.account.deaths = a.at("deaths");
    t.account.restarts = a.at("restarts");
    t.account.promoted = a.value("promoted", u64{0});
    for (std::size_t k = 0; k < std::size(t.account.no_standby); ++k)
        t.account.no_standby[k] = a.value("no_standby", json::array({0, 0, 0})).at(k);
    t.account.domain_faults = a.value("domain_faults", u64{0});
    t.account.domain_abandoned = a.value("domain_abandoned", false);
    t.account.domain_ends = a.value("domain_ends", u64{0});
    t.account.domain_restored = a.value("domain_restored", true);
    t.trial.on_trial = a.value("on_trial", shm::none);
    t.account.domain_blamed = t.trial.blamed = a.value("blamed", std::vector<u32>());
    if (t.trial.in_progress() && t.trial.on_trial >= t.setup->stages.size()) t.trial.on_trial = shm::none;
    t.account.abandoned_before = a.value("abandoned_before", u64{0});
    for (const json& v : a.at("abandoned"))
        t.account.abandoned.push_back({v.at("ring_sequence"), v.at("stage"), v.at("reason")});
    if (const json& f = state.at("failure"); f.is_object())
        t.failure = root_cause{f.at("label"), f.at("what"), f.at("exit_code"),
                               f.at("last_lines").get<std::vector<std::string>>()};
    return remembered;
}

}  // namespace carousel::supervisor
