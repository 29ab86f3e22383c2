#include "supervisor/processes/process_table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "ring/link.hpp"
#include "supervisor/processes/abandoned_processes.hpp"
#include "supervisor/processes/mps_seats.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/stores/checkpoint_store.hpp"

namespace carousel::supervisor {

process_table::process_table(const run_setup& s, event_loop& l, console& console)
    : setup(&s), loop(&l), out(&console), ledgers(s) {
    u32 index = 0;
    for (u32 k = 0; k < setup->stages.size(); ++k) {
        const stage_setup& st = setup->stages[k];
        for (u32 i = 0; i < st.spec.instances; ++i) {
            auto fresh = std::make_unique<seat>();
            fresh->index = index++;
            fresh->stage = k;
            fresh->instance = i;
            fresh->label = st.spec.instances > 1 ? fmt::format("{}.{}", st.spec.name, i) : st.spec.name;
            label_width = std::max(label_width, fresh->label.size());
            seats.push_back(std::move(fresh));
        }
    }
    for (auto& each : seats)
        each->log =
            std::make_unique<log_sink>(console, each->label, label_width, each->stage,
                                       fmt::format("{}/logs/{}.jsonl", setup->directory, each->label));
    recoveries = recovery_log(setup->directory + "/recoveries.jsonl");
    journal = std::make_unique<log_sink>(console, "carousel", label_width, 6,
                                         setup->directory + "/logs/@carousel.jsonl");
}

process_table::~process_table() {
    for (const shm::unique_fd& each : abandoned_pidfds) loop->forget(each.get());
    for (auto& s : seats) {
        if (s->now) s->gone.push_back(std::move(s->now));
        if (s->standby) s->gone.push_back(std::move(s->standby));
        for (auto& p : s->gone) {
            if (p->pidfd) loop->forget(p->pidfd.get());
            if (p->tool_pidfd) loop->forget(p->tool_pidfd.get());
            if (p->log.fd() >= 0) loop->forget(p->log.fd());
        }
    }
}

void process_table::attach_to(shm::control_block& block, const memory_store& kept,
                              const shm::control_block* published) {
    CAROUSEL_ASSERT(all_gone());
    c = &block;
    made = published != nullptr ? published : &block;
    memory = &kept;
    for (auto& s : seats) {
        std::erase_if(s->gone, [](const auto& p) { return !p->port || p->ended; });
        s->successor = {};
        if (s->standby) s->standby->incarnation = {};  // it has no entry in this block
    }
}

void process_table::count_cpu() noexcept {
    for (auto& s : seats) {
        const auto count = [&](process& p) {
            s->counters.cpu_ns += uncounted_cpu_ns(*this, p);
            p.cpu_counted = true;
        };
        if (s->now) count(*s->now);
        for (auto& p : s->gone) count(*p);
    }
}

void process_table::log_line(const std::string& text) const { journal->line(::getpid(), text); }

void process_table::note(const char* kind, u64 time_ns, const seat& s, const process& p, std::string text) {
    notes.add({0, time_ns, kind, s.index, p.incarnation.epoch, p.pid, std::move(text)});
}

std::vector<seat*> process_table::find(const std::string& name) const {
    std::vector<seat*> found;
    std::string known;
    std::vector<std::string> names;
    for (const auto& s : seats) {
        const std::string& stage = setup->stages[s->stage].spec.name;
        if (name == stage || name == fmt::format("{}.{}", stage, s->instance)) found.push_back(s.get());
        known += (known.empty() ? "" : ", ") + s->label;
        names.push_back(stage);
        if (s->label != stage) names.push_back(s->label);
    }
    if (found.empty())
        throw config_error(fmt::format("the pipeline {} has no stage \"{}\"; it has {}{}", setup->name, name,
                                       known, did_you_mean_clause(name, names)));
    return found;
}

void process_table::fail(const std::string& label, const std::string& what, int code) {
    if (!failure) failure = root_cause{label, what, code, {}};
}

bool process_table::all_gone() const noexcept {
    return holders_gone() && std::all_of(seats.begin(), seats.end(), [&](const auto& s) {
               return !s->standby || (paused && !ending && s->standby->has_detached) ||
                      may_be_abandoned(*this, *s->standby);
           });
}

bool process_table::holders_gone() const noexcept {
    // Does not wait for external programs on ports. A rebuild waits until they can commit nothing.
    const auto exits_by_itself = [this](const process& p) {
        return p.port && (ending || (paused && is_revoked(p) && p.requeued));
    };
    return std::all_of(seats.begin(), seats.end(), [&](const auto& s) {
        return (!s->now || exits_by_itself(*s->now)) &&
               std::all_of(s->gone.begin(), s->gone.end(), [&](const auto& p) {
                   return exits_by_itself(*p) || may_be_abandoned(*this, *p) ||
                          (p->ended && !p->tool_pidfd && (!paused || fence_is_known(*this, *p)));
               });
    });
}

std::vector<std::string> process_table::unended_processes() const {
    std::vector<std::string> names;
    for (const auto& s : seats) {
        if (s->now) names.push_back(fmt::format("{} (pid {})", s->label, s->now->pid));
        if (s->standby) names.push_back(fmt::format("{}'s standby (pid {})", s->label, s->standby->pid));
        for (const auto& p : s->gone)
            if (!p->ended) names.push_back(fmt::format("{} (pid {})", s->label, p->pid));
    }
    return names;
}

namespace {

u64 last_of_run(const process_table& t) noexcept { return t.end ? *t.end : ring::load(t.c->end); }

/// True if the run was stopped at `last` and the stage has still to write its state for the run that
/// continues, so a process that dies before is replaced.
bool owes_state(const process_table& t, u32 stage, u64 last) {
    return t.checkpoints != nullptr && ring::load(t.c->stop_asked) != 0 && last < t.setup->end &&
           t.checkpoints->lacks_state(t.setup->stages[stage].spec.name, last);
}

}  // namespace

bool process_table::has_all_frames(u32 stage) const noexcept {
    const u64 last = last_of_run(*this);
    if (last == ring::end_unknown || last == ring::end_stopping) return false;
    const shm::stage_block& b = made->stage[stage];
    if (b.source != shm::none) {
        bool all = b.outputs > 0;
        for (u32 i = 0; i < std::min(b.outputs, shm::max_outputs); ++i)
            all = all && b.output_link[i] < shm::max_links &&
                  ring::load(c->link[b.output_link[i]].tail) >= last;
        return all;
    }
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] >= shm::max_links || ring::load(c->link[b.input_link[i]].tail) < last)
            return false;
    return true;
}

bool process_table::through(u32 stage) const noexcept {
    return has_all_frames(stage) && !owes_state(*this, stage, last_of_run(*this));
}

bool process_table::has_finished(u32 stage, const death& how) const noexcept {
    const bool by_itself = how.known && !how.outside && !how.deadline && !how.restart_requested;
    if (by_itself && how.signal == 0 && how.exit_code == exit_code::ok) return has_all_frames(stage);
    return through(stage);
}

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
    return {p.incarnation.entry,     p.incarnation.epoch, p.pid,           p.start_time,      p.spawned_ns,
            p.signalled_ns,          p.seen_dead_ns,      p.user_signal,   p.by_hand,         p.tool,
            p.by_supervisor,         p.counted,           p.judged,        p.cpu_counted,     p.how.outside,
            p.how.restart_requested, p.how.deadline,      p.how.was_ready, p.mps.with_domain, p.on_gpu,
            p.mps.generation};
}

json seat_json(const seat& s) {
    std::vector<process_record> processes;
    if (s.now) processes.push_back(record_of(*s.now));
    for (const auto& p : s.gone) processes.push_back(record_of(*p));
    if (s.standby) processes.push_back(record_of(*s.standby));  // needed if its entry is damaged later
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
            {"counters", s.counters},
            {"processes", processes}};
}

void mix(u64& sum, u64 value) noexcept { sum = (sum ^ value) * 0x100'0000'01b3ULL; }

void mix_process(u64& sum, const process& p) noexcept {
    mix(sum, u64{p.incarnation.entry} << 32U | p.incarnation.epoch);
    const bool flags[] = {p.by_supervisor, p.counted,       p.judged, p.how.outside, p.how.restart_requested,
                          p.how.deadline,  p.how.was_ready, p.tool,   p.ended,       p.mps.with_domain};
    for (const bool f : flags) mix(sum, f ? 1 : 2);
    mix(sum, static_cast<u64>(p.pid) << 32U | static_cast<u32>(p.user_signal));
    mix(sum, p.signalled_ns);
    mix(sum, p.mps.generation);
}

}  // namespace

u64 uncounted_cpu_ns(const process_table& t, const process& p) noexcept {
    if (p.cpu_counted || p.pid == 0 || p.incarnation.entry >= shm::max_incarnations) return 0;
    return ring::load(t.c->entry[p.incarnation.entry].cpu_ns);
}

run::seat_counters counters_of(const process_table& t, const seat& s) {
    run::seat_counters sum = s.counters;
    if (s.now) sum.cpu_ns += uncounted_cpu_ns(t, *s.now);
    for (const auto& p : s.gone) sum.cpu_ns += uncounted_cpu_ns(t, *p);
    return sum;
}

u64 fingerprint(const process_table& t) noexcept {
    u64 sum = 0xcbf2'9ce4'8422'2325ULL;
    for (const auto& s : t.seats) {
        mix(sum, static_cast<u64>(s->machine.state()) << 8U | s->machine.fresh_deaths());
        mix(sum, s->machine.since_ns());
        mix(sum, u64{s->restarts} << 32U | s->pids.size());
        mix(sum, s->start_wanted ? s->due_ns + 1 : 0);
        mix(sum, s->counters.takeovers.total() << 32U | s->counters.standby_takeovers.total());
        mix(sum, s->counters.cpu_ns);
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
        s.counters = j.value("counters", run::seat_counters());
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
