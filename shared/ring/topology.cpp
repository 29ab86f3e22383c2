#include "ring/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "ring/parameter_box.hpp"

namespace carousel::ring {
namespace {

template <std::size_t N>
void set_name(char (&to)[N], const std::string& name) {
    std::memset(to, 0, N);
    name.copy(to, N - 1);
}

void require(bool holds, const std::string& message) {
    if (!holds) throw config_error(message);
}

u32 frames_under_way(const stage_plan& s) { return s.in_flight * s.instances; }

/// Returns which output of its source stage this input reads.
u32 output_read(const stage_plan& s, std::size_t input) {
    return input < s.input_outputs.size() ? s.input_outputs[input] : 0;
}

void write_link(shm::control_block& c, const plan& p, u32 stage, u32 output) {
    const stage_plan& s = p.stages[stage];
    require(c.links < shm::max_links, fmt::format("more than {} rings in one pipeline", shm::max_links));
    const u32 index = c.links++;
    shm::link_block& l = c.link[index];
    c.stage[stage].output_link[output] = index;
    c.stage[stage].outputs = output + 1;
    const bool only_states = s.state && s.more.empty();
    set_name(l.name, only_states ? s.name + ".state" : output == 0 ? s.name : s.more[output - 1].name);
    l.stage = stage;
    l.window = derived_window(p, stage, output);
    l.slots = derived_slots(p, stage, output);
    l.slot_bytes = output == 0 ? s.slot_bytes : s.more[output - 1].slot_bytes;
    const u64 lease = output == 0 ? s.latest_lease_ns : s.more[output - 1].latest_lease_ns;
    l.latest_lease_ns = lease != 0 ? lease : p.latest_lease_ns;
    require(l.window <= shm::max_window && l.slots <= shm::max_slots,
            fmt::format("link {}: the window must be {} (at most {} is possible), and the number of buffers "
                        "{} (at most {} is possible): lower "
                        "in_flight, instances or window",
                        l.name, l.window, shm::max_window, l.slots, shm::max_slots));
    l.tail.store(p.first_ring_sequence, std::memory_order_relaxed);
    const u32 generation = p.first.generation & static_cast<u32>(generation_mask);
    for (u32 k = 0; k < l.slots; ++k) {
        l.slot[k].store(slot_word{generation, 0, 0, slot_state::free}.pack(), std::memory_order_relaxed);
        for (word& at : l.group[k])
            at.store(lease_word{generation, 0, 0, 0, lease_state::wait}.pack(), std::memory_order_relaxed);
    }
}

void write_source(shm::control_block& c, const plan& p, u32 stage) {
    const u32 index = c.sources++;
    c.stage[stage].source = index;
    shm::source_block& q = c.source[index];
    q.stage = stage;
    q.link = c.stage[stage].output_link[0];
    q.first_lap = p.first.lap;
    begin_numbers(c, index, p.first_ring_sequence);
}

// With several instances, or with frames that the stage does not take, the state before a frame would be one
// that no process of the stage has made.
void require_ring_of_states(const stage_plan& s) {
    require(s.has_output && !(s.inputs.empty() && s.more.empty()),
            fmt::format("source {} has a state, but no output in addition to it", s.name));
    require(s.instances == 1, fmt::format("stage {} has a state, so it can have only one instance, not {}",
                                          s.name, s.instances));
    require(s.every <= 1 && !s.latest && !s.optional && !s.skips,
            fmt::format("stage {} has a state, so it must get every frame", s.name));
}

void write_seats(shm::control_block& c, const plan& p, u32 stage) {
    const stage_plan& s = p.stages[stage];
    shm::stage_block& b = c.stage[stage];
    b.first_seat = c.seats;
    b.seats = s.instances;
    require(c.seats + s.instances <= shm::max_seats,
            fmt::format("more than {} stage instances in one pipeline", shm::max_seats));
    for (u32 i = 0; i < s.instances; ++i) {
        const u32 seat = c.seats++;
        shm::seat_block& sb = c.seat[seat];
        sb.stage = stage;
        sb.instance = i;
        sb.first_job = c.jobs;
        sb.jobs = s.in_flight * 2;  // A seat has two job words per frame in flight, because a successor works
                                    // while its predecessor's words still wait for the fence.
        require(c.jobs + sb.jobs <= shm::max_jobs,
                fmt::format(
                    "more than {} job words (2 x in_flight of every instance): lower in_flight or instances",
                    shm::max_jobs));
        for (u32 j = 0; j < sb.jobs; ++j) {
            c.job_info[c.jobs + j].seat = seat;
            c.job[c.jobs + j].store(job_word{p.first.version, 0, job_state::idle}.pack(),
                                    std::memory_order_relaxed);
        }
        c.jobs += sb.jobs;
        sb.first_epoch = p.first.epoch;
        sb.current.store(seat_word{p.first.epoch, shm::none}.pack(), std::memory_order_relaxed);
    }
}

void write_inputs(shm::control_block& c, const plan& p, u32 stage) {
    const stage_plan& s = p.stages[stage];
    shm::stage_block& b = c.stage[stage];
    require(s.inputs.size() <= shm::max_inputs,
            fmt::format("stage {}: more than {} inputs", s.name, shm::max_inputs));
    b.inputs = static_cast<u32>(s.inputs.size());
    for (u32 i = 0; i < b.inputs; ++i) {
        const shm::stage_block& from = c.stage[s.inputs[i]];
        CAROUSEL_ASSERT(output_read(s, i) < from.outputs);
        const u32 link = from.output_link[output_read(s, i)];
        shm::link_block& l = c.link[link];
        b.input_link[i] = link;
        b.input_group[i] = shm::none;  // a latest member joins when its process starts
        if (s.latest) continue;
        require(l.blocking < shm::max_blocking,
                fmt::format("link {}: more than {} consuming stages", l.name, shm::max_blocking));
        const u32 group = l.blocking++;
        l.group_stage[group] = stage;
        l.group_state[group].store(group_word{0, 0, group_state::blocking}.pack(), std::memory_order_relaxed);
        b.input_group[i] = group;
    }
}

// Called after all rings are written, because a sampled ring may lie downstream of the stage. A member joins
// when its process starts.
void write_sampled_inputs(shm::control_block& c, const plan& p, u32 stage) {
    const stage_plan& s = p.stages[stage];
    shm::stage_block& b = c.stage[stage];
    require(s.sampled_inputs.size() <= shm::max_sampled_inputs,
            fmt::format("stage {}: more than {} sampled inputs", s.name, shm::max_sampled_inputs));
    b.sampled_inputs = static_cast<u32>(s.sampled_inputs.size());
    for (u32 i = 0; i < b.sampled_inputs; ++i) {
        const shm::stage_block& from = c.stage[s.sampled_inputs[i]];
        const u32 output = i < s.sampled_outputs.size() ? s.sampled_outputs[i] : 0;
        CAROUSEL_ASSERT(output < from.outputs);
        b.sampled_link[i] = from.output_link[output];
    }
}

}  // namespace

u32 derived_window(const plan& p, u32 stage, u32 output) {
    const stage_plan& s = p.stages[stage];
    const u32 given = output == 0 ? s.window : s.more[output - 1].window;
    if (given != 0) return given;
    u32 largest = 0;
    for (const stage_plan& other : p.stages)
        for (std::size_t i = 0; i < other.inputs.size(); ++i)
            if (other.inputs[i] == stage && output_read(other, i) == output)
                largest = std::max(largest, frames_under_way(other));
    return std::max(8U, frames_under_way(s) + largest);
}

u32 derived_slots(const plan& p, u32 stage, u32 output) {
    const stage_plan& s = p.stages[stage];
    const u32 kept = s.state && output == s.more.size() ? 1 : 0;  // the state below the tail
    return derived_window(p, stage, output) + frames_under_way(s) + s.in_flight + 1 + kept;
}

// The word of index i begins at the lap of the first number >= first that maps to index i. Number n uses the
// word with the index n % window, where `window` is that of the source's first output.
void begin_numbers(shm::control_block& c, u32 source, u64 first) noexcept {
    shm::source_block& q = c.source[source];
    const u64 n = c.link[q.link].window;
    for (u64 i = 0; i < n; ++i) {
        const u64 number = first + (i + n - first % n) % n;
        q.sequence_lease[i].store(lease_word{lap_of(q, number, n), 0, 0, 0, lease_state::wait}.pack(),
                                  std::memory_order_relaxed);
    }
}

void initialise(shm::control_block& c, const plan& p) {
    require(!p.stages.empty() && p.stages.size() <= shm::max_stages,
            fmt::format("a pipeline has 1 to {} stages", shm::max_stages));
    set_name(c.pipeline, p.pipeline);
    c.width = p.width;
    c.height = p.height;
    c.fps = p.fps;
    c.frame_timeout_ns = p.frame_timeout_ns;
    c.first_ring_sequence = p.first_ring_sequence;
    c.stages = static_cast<u32>(p.stages.size());
    c.end.store(p.end, std::memory_order_relaxed);
    // A run with parameters calls this function again with its values.
    initialise_parameters(c.parameters, {}, p.first_ring_sequence);
    for (u32 k = 0; k < c.stages; ++k) {
        const stage_plan& s = p.stages[k];
        shm::stage_block& b = c.stage[k];
        set_name(b.name, s.name);
        std::fill(std::begin(b.output_link), std::end(b.output_link), shm::none);
        b.source = shm::none;
        b.in_flight = s.in_flight;
        b.max_attempts = std::min(s.max_attempts, max_failures);
        b.every = std::max(s.every, 1U);
        b.frame_timeout_ns = s.frame_timeout_ns;
        if (s.state) require_ring_of_states(s);
        b.flags = (s.owner_commits || s.state ? shm::stage_flag::owner_commits : 0U) |
                  (s.state ? shm::stage_flag::state : 0U) | (s.latest ? shm::stage_flag::latest : 0U) |
                  (s.optional ? shm::stage_flag::optional : 0U) | (s.ends ? shm::stage_flag::ends : 0U) |
                  (s.skips ? shm::stage_flag::skips : 0U);
        write_inputs(c, p, k);
        require(s.more.size() < shm::max_outputs && (s.has_output || s.more.empty()),
                fmt::format("stage {}: more than {} outputs", s.name, shm::max_outputs));
        for (u32 o = 0; s.has_output && o <= s.more.size(); ++o) write_link(c, p, k, o);
        if (s.inputs.empty()) {
            require(s.has_output, fmt::format("stage {} has neither inputs nor an output", s.name));
            write_source(c, p, k);
        }
        write_seats(c, p, k);
    }
    for (u32 k = 0; k < c.stages; ++k) write_sampled_inputs(c, p, k);
}

}  // namespace carousel::ring
