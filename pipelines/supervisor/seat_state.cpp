// seat_keeper: what lives in the supervisor's memory only, as JSON for the supervisor after it. Everything else that one needs is in
// the control block. The file may be one event older than the block when a supervisor is killed; where the two differ, the block is
// right (seat_adoption.cpp).
#include <algorithm>

#include "core/clock.hpp"
#include "supervisor/seats.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t kept_pids = 2000;  // a run of weeks must not write megabytes at each death

template <typename T>
json last_of(const std::vector<T>& all, std::size_t most) {
    return json(std::vector<T>(all.end() - static_cast<std::ptrdiff_t>(std::min(most, all.size())), all.end()));
}

json life_json(const life& l) {
    return {{"entry", l.who.entry},
            {"epoch", l.who.epoch},
            {"pid", l.pid},
            {"by_hand", l.by_hand},
            {"tool", l.tool},
            {"spawned_ns", l.spawned_ns},
            {"signalled_ns", l.signalled_ns},
            {"seen_dead_ns", l.seen_dead_ns},
            {"user_signal", l.user_signal},
            {"by_us", l.by_us},
            {"counted", l.counted},
            {"judged", l.judged},
            {"outside", l.how.outside},
            {"asked", l.how.asked},
            {"deadline", l.how.deadline},
            {"was_ready", l.how.was_ready}};
}

json seat_json(const seat& s) {
    json lives = json::array();
    if (s.now) lives.push_back(life_json(*s.now));
    for (const auto& l : s.gone) lives.push_back(life_json(*l));
    return {{"label", s.label},
            {"state", static_cast<int>(s.machine.state())},
            {"since_ns", s.machine.since_ns()},
            {"fresh_deaths", s.machine.fresh_deaths()},
            {"start_wanted", s.start_wanted},
            {"due_ns", s.due_ns},
            {"pids", last_of(s.pids, kept_pids)},
            {"restarts", s.restarts},
            {"last_exit", s.last_exit},
            {"lives", lives}};
}

void mix(u64& sum, u64 value) noexcept { sum = (sum ^ value) * 0x100'0000'01b3ULL; }

void mix_life(u64& sum, const life& l) noexcept {
    mix(sum, u64{l.who.entry} << 32U | l.who.epoch);
    const bool flags[] = {l.by_us, l.counted, l.judged, l.how.outside, l.how.asked, l.how.deadline, l.how.was_ready, l.tool, l.ended};
    for (const bool f : flags) mix(sum, f ? 1 : 2);
    mix(sum, static_cast<u64>(l.pid) << 32U | static_cast<u32>(l.user_signal));
    mix(sum, l.signalled_ns);
}

}  // namespace

u64 seat_keeper::fingerprint() const noexcept {
    u64 sum = 0xcbf2'9ce4'8422'2325ULL;
    for (const auto& s : seats_) {
        mix(sum, static_cast<u64>(s->machine.state()) << 8U | s->machine.fresh_deaths());
        mix(sum, s->machine.since_ns());
        mix(sum, u64{s->restarts} << 32U | s->pids.size());
        mix(sum, s->start_wanted ? s->due_ns + 1 : 0);
        if (s->now) mix_life(sum, *s->now);
        for (const auto& l : s->gone) mix_life(sum, *l);
    }
    mix(sum, account_.deaths);
    mix(sum, account_.restarts);
    mix(sum, account_.promoted);
    for (const u64 n : account_.no_spare) mix(sum, n);
    mix(sum, account_.domain_faults << 1U | (account_.domain_given_up ? 1U : 0U));
    mix(sum, account_.domain_ends << 1U | (account_.domain_whole ? 1U : 0U));
    mix(sum, (account_.given_up_before + account_.given_up.size()) << 1U | (failure_ ? 1U : 0U));
    return sum;
}

json seat_keeper::state_json() const {
    json seats = json::array(), given_up = json::array(), failure;
    for (const auto& s : seats_) seats.push_back(seat_json(*s));
    for (const void_frame& v : account_.given_up) given_up.push_back({{"sequence", v.sequence}, {"stage", v.stage}, {"reason", v.reason}});
    if (failure_)
        failure = {{"label", failure_->label}, {"what", failure_->what}, {"exit_code", failure_->exit_code}, {"last_lines", failure_->last_lines}};
    return {{"seats", seats},
            {"failure", failure},
            {"account",
             {{"kills_at", account_.kills_at},
              {"deaths", account_.deaths},
              {"restarts", account_.restarts},
              {"promoted", account_.promoted},
              {"no_spare", account_.no_spare},
              {"domain_faults", account_.domain_faults},
              {"domain_given_up", account_.domain_given_up},
              {"domain_ends", account_.domain_ends},
              {"domain_whole", account_.domain_whole},
              {"given_up_before", account_.given_up_before},
              {"given_up", given_up}}}};
}

// Throws json::exception on a file that is not ours; the caller goes on without it.
void seat_keeper::restore(const json& state) {
    const json& seats = state.at("seats");
    remembered_ = json::array();
    for (std::size_t k = 0; k < seats_.size() && k < seats.size(); ++k) {
        const json& j = seats[k];
        seat& s = *seats_[k];
        s.machine.resume(static_cast<seat_state>(std::clamp(j.at("state").get<int>(), 0, static_cast<int>(seat_state::done))),
                         j.at("since_ns"), j.at("fresh_deaths"));
        s.start_wanted = j.at("start_wanted");
        s.due_ns = j.at("due_ns");
        s.pids = j.at("pids").get<std::vector<i32>>();
        s.restarts = j.at("restarts");
        s.last_exit = j.at("last_exit");
        remembered_.push_back(j.at("lives"));
    }
    const json& a = state.at("account");
    for (std::size_t k = 0; k < std::size(account_.kills_at); ++k) account_.kills_at[k] = a.at("kills_at").at(k);
    account_.deaths = a.at("deaths");
    account_.restarts = a.at("restarts");
    account_.promoted = a.value("promoted", u64{0});
    for (std::size_t k = 0; k < std::size(account_.no_spare); ++k) account_.no_spare[k] = a.value("no_spare", json::array({0, 0, 0})).at(k);
    account_.domain_faults = a.value("domain_faults", u64{0});
    account_.domain_given_up = a.value("domain_given_up", false);
    account_.domain_ends = a.value("domain_ends", u64{0});
    account_.domain_whole = a.value("domain_whole", true);
    account_.given_up_before = a.value("given_up_before", u64{0});
    for (const json& v : a.at("given_up")) account_.given_up.push_back({v.at("sequence"), v.at("stage"), v.at("reason")});
    if (const json& f = state.at("failure"); f.is_object())
        failure_ = root_cause{f.at("label"), f.at("what"), f.at("exit_code"), f.at("last_lines").get<std::vector<std::string>>()};
}

}  // namespace carousel::supervisor
