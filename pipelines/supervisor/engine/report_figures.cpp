#include "supervisor/engine/report_figures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/words.hpp"
#include "shm/sink.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "telemetry/frame_facts.hpp"

namespace carousel::supervisor {
namespace {

/// Calls fn(entry) for each process that works, or has worked, for one of the stages that `of` selects
/// (of(stage) is true).
template <typename Of, typename F>
void for_each_process(const shm::control_block& c, Of&& of, F&& fn) {
    for (const shm::incarnation& e : c.entry) {
        const auto owner = ring::entry_word::of(ring::load(e.identity));
        if (owner.state == ring::entry_state::damaged || owner.seat >= std::min(c.seats, shm::max_seats))
            continue;
        const u32 stage = c.seat[owner.seat].stage;
        if (stage < std::min(c.stages, shm::max_stages) && of(c.stage[stage])) fn(e);
    }
}

bool is_source(const shm::stage_block& s) noexcept { return s.inputs == 0; }

using telemetry::stage_condition;
constexpr u64 span_ns = 2 * ns_per_s, add_every_ns = ns_per_s / 2;

stage_condition condition_of(seat_state s) noexcept {
    switch (s) {
        case seat_state::running:
        case seat_state::done:
            return stage_condition::up;
        case seat_state::starting:
            return stage_condition::starting;
        case seat_state::stopped:
            return stage_condition::paused;
        default:
            return stage_condition::down;
    }
}

/// Returns the seat that has the best state among the seats of the stage; null: the stage has no seat.
const seat* best_of(const seat_list& seats, u32 stage) {
    const seat* best = nullptr;
    for (const auto& s : seats)
        if (s->stage == stage &&
            (best == nullptr || condition_of(s->machine.state()) < condition_of(best->machine.state())))
            best = s.get();
    return best;
}

std::string how_missing(seat_state s) {
    switch (s) {
        case seat_state::backoff:
            return "waits to be restarted";
        case seat_state::failed:
            return "has failed";
        case seat_state::stopping:
            return "is being ended";
        case seat_state::vacant:
            return "has no program";
        default:
            return "is down";
    }
}

/// For a port: returns the call by which a program attaches to it, in C++ and in Python.
std::string entrance(const run_setup& s, u32 stage) {
    const stage_spec& p = s.stages[stage].spec;
    return fmt::format(" (a program opens it with open(\"{}\").{}(\"{}\"))", s.name,
                       p.inputs.empty() ? "writer" : "reader", p.name);
}

using nlohmann::json;

json clock_json(shm::capture_clock clock) {
    if (clock == shm::capture_clock::live) return "live";
    return clock == shm::capture_clock::recorded ? json("recorded") : json();
}

json used_of(const ring_setup& r, const shm::used_extents& used) {
    try {
        return telemetry::used_json(ring::frame_format::from_json(r.format.dump()), used);
    } catch (const error&) {  // an invalid format must not prevent the report
        return json::object();
    }
}

/// Returns an object with one member per sampled input, by the input's name: the number of the frame that was
/// used, or null if the input had no frame yet.
json sampled_frames_of(const stage_setup& st, const std::vector<u64>& frames) {
    json out = json::object();
    for (std::size_t k = 0; k < std::min(frames.size(), st.spec.sampled_inputs.size()); ++k)
        out[st.spec.sampled_inputs[k]] = frames[k] == shm::no_sampled_frame ? json() : json(frames[k]);
    return out;
}

bool carries_nothing(const ring::frame_facts& f) {
    return f.capture_ns == 0 && f.metadata.empty() && f.metadata_omitted == 0 && f.used.planes == 0 &&
           f.sampled_frames.empty();
}

}  // namespace

// The header of the first frame may already be overwritten, but the time of the first commit of the source's
// process is still stored.
u64 first_frame_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept {
    u64 first = latest;
    const auto take = [&](u64 at) {
        if (at >= earliest) first = std::min(first, at);
    };
    for_each_process(c, is_source, [&](const shm::incarnation& e) { take(ring::load(e.first_commit_ns)); });
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        const u32 stage = c.link[k].stage;
        if (stage >= std::min(c.stages, shm::max_stages) || !is_source(c.stage[stage])) continue;
        for (u32 s = 0; s < std::min(c.link[k].slots, shm::max_slots); ++s)
            take(c.frames[k].header[s].meta.born_ns);
    }
    return first;
}

u64 last_delivery_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept {
    u64 last = 0;
    for_each_process(c, shm::is_sink, [&](const shm::incarnation& e) {
        const u64 at = ring::load(e.last_commit_ns);
        if (at >= earliest && at <= latest) last = std::max(last, at);
    });
    return last != 0 ? last : latest;
}

stage_times::sample stage_times::take_sample(const shm::control_block& c, u64 now) const {
    sample l;
    l.at_ns = now;
    for (u32 k = 0; k < setup_->stages.size(); ++k)
        l.stages.push_back(telemetry::read_time(c.stage[k].counters));
    return l;
}

void stage_times::begin(const shm::control_block& c, u64 now) { begun_ = take_sample(c, now); }

void stage_times::tick(const shm::control_block& c, u64 now) {
    if (begun_.at_ns == 0 || (!past_.empty() && now - past_.back().at_ns < add_every_ns)) return;
    past_.push_back(take_sample(c, now));
    while (past_.size() > 2 && past_[1].at_ns + span_ns <= now) past_.pop_front();
}

void stage_times::finish(const shm::control_block& c, u64 now) {
    if (finished_.at_ns == 0) finished_ = take_sample(c, now);
}

std::vector<telemetry::stage_shares> stage_times::between(const sample& before, const sample& after) const {
    if (before.at_ns == 0 || after.at_ns <= before.at_ns) return {};
    std::vector<telemetry::stage_shares> out(setup_->stages.size());
    for (u32 k = 0; k < out.size(); ++k)
        out[k] = telemetry::shares_of(after.stages[k], before.stages[k], after.at_ns - before.at_ns,
                                      setup_->stages[k].spec.instances);
    return out;
}

std::vector<telemetry::stage_shares> stage_times::recent() const {
    return past_.empty() ? std::vector<telemetry::stage_shares>() : between(past_.front(), past_.back());
}

std::vector<telemetry::stage_shares> stage_times::whole() const {
    return between(begun_, finished_.at_ns != 0 || past_.empty() ? finished_ : past_.back());
}

nlohmann::json bottleneck_of(const run_setup& s, const std::vector<telemetry::stage_shares>& shares,
                             const seat_list* seats) {
    std::vector<telemetry::stage_load> loads(s.stages.size());
    for (u32 k = 0; k < loads.size(); ++k) {
        if (k < shares.size()) loads[k].shares = shares[k];
        loads[k].source = s.stages[k].spec.input_indices.empty();
        loads[k].waited_for = !s.stages[k].spec.latest();
        const seat* best = seats != nullptr ? best_of(*seats, k) : nullptr;
        const bool absent = seats != nullptr && is_absent(s, *seats, k);
        loads[k].required = !absent && !s.stages[k].spec.skips();
        if (best != nullptr) loads[k].condition = condition_of(best->machine.state());
    }
    const telemetry::bottleneck b = telemetry::find_bottleneck(loads, s.fps);
    if (b.stage >= s.stages.size()) return telemetry::bottleneck_json(b, "", s.fps);
    const std::string& name = s.stages[b.stage].spec.name;
    nlohmann::json j = telemetry::bottleneck_json(b, name, s.fps);
    const seat* best = seats != nullptr ? best_of(*seats, b.stage) : nullptr;
    if (b.what == telemetry::bottleneck::kind::down && best->machine.state() == seat_state::vacant) {
        j["kind"] = name_of(seat_state::vacant);
        j["text"] =
            fmt::format("port {} has no program: the other stages wait until a program opens it", name);
    }
    return j;
}

std::vector<missing_stage> missing_stages(const run_setup& s, const seat_list& seats) {
    std::vector<missing_stage> out;
    for (u32 k = 0; k < s.stages.size(); ++k) {
        const stage_spec& spec = s.stages[k].spec;
        const seat* best = spec.may_miss() ? nullptr : best_of(seats, k);
        if (is_absent(s, seats, k)) continue;
        if (best != nullptr && condition_of(best->machine.state()) == stage_condition::down)
            out.push_back({s.stages[k].spec.name,
                           how_missing(best->machine.state()) +
                               (best->machine.state() == seat_state::vacant ? entrance(s, k) : "")});
    }
    return out;
}

json carried_json(const stage_setup& st, const shm::control_block& c, u32 stage, u32 output) {
    if (output >= std::min(st.outputs(), shm::max_outputs) || stage >= std::min(c.stages, shm::max_stages))
        return {};
    const auto f = telemetry::last_facts(c, c.stage[stage].output_link[output]);
    if (!f || carries_nothing(*f)) return {};
    json j{{"frame", f->ring_sequence},
           {"tombstone", f->is_tombstone()},
           {"capture_clock", clock_json(f->clock)},
           {"capture_ns", f->capture_ns != 0 ? json(f->capture_ns) : json()},
           {"metadata", telemetry::metadata_json(f->metadata)},
           {"metadata_omitted", f->metadata_omitted},
           {"used", used_of(st.ring(output), f->used)}};
    if (!st.spec.sampled_inputs.empty()) j["sampled"] = sampled_frames_of(st, f->sampled_frames);
    return j;
}

}  // namespace carousel::supervisor
