#include "supervisor/processes/process_table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "ring/link.hpp"

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
        s->gone.clear();
        s->successor = {};
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
    // Does not wait for external programs on ports.
    const auto exits_by_itself = [this](const process& p) { return p.port && ending; };
    return std::all_of(seats.begin(), seats.end(), [&](const auto& s) {
        return (!s->now || exits_by_itself(*s->now)) && !s->standby &&
               std::all_of(s->gone.begin(), s->gone.end(), [&](const auto& p) {
                   return exits_by_itself(*p) || (p->ended && !p->tool_pidfd);
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

bool process_table::through(u32 stage) const noexcept {
    const u64 last = end ? *end : ring::load(c->end);
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

}  // namespace carousel::supervisor
