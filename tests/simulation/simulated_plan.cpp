#include "simulated_plan.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "hosts/seal.hpp"
#include "supervisor/stores/ledger_store.hpp"

namespace carousel::test {

using namespace carousel::supervisor;

namespace {

stage_setup stage_of(const std::string& name, std::vector<u32> inputs, bool output, machine& m) {
    stage_setup st;
    st.spec.name = name;
    st.program = "simulated";
    st.spec.input_indices = std::move(inputs);
    st.spec.in_flight = 1 + static_cast<u32>(m.below(3));
    st.spec.frame_timeout_ms = 400 + 100 * static_cast<u32>(m.below(4));
    st.spec.standby = m.below(3) == 0;
    st.owner_commits = !output || m.below(3) == 0;
    if (output) {
        st.format = {{"type", "t"}};
        st.slot_bytes = 512;
        st.spec.has_output = true;
    }
    return st;
}

/// The stage's frames are read or written by a program that opens the stage's port.
void make_port(stage_setup& st, bool skips) {
    st.spec.run = "port";
    st.spec.settings["vacant"] = skips ? "skip" : "wait";
    st.spec.in_flight = 1;
    st.spec.standby = false;
    st.spec.every = 1;
    st.owner_commits = true;
}

}  // namespace

std::string choose_plan(run_setup& s, observed_run& r, machine& m) {
    s.name = "simulated";
    s.device_name = "cpu";
    s.frame_timeout_ms = 600;
    s.start_timeout_ns = 3 * ns_per_s;
    s.stop_timeout_ns = 2 * ns_per_s;
    s.stall_timeout_ms = 3000;
    s.allow_dead_letters = ~u64{0};
    s.end = s.frames = 40 + m.below(100);
    const u64 shape = std::min<u64>(m.below(7), 5);
    s.stages.push_back(stage_of("source", {}, true, m));
    const bool middle = shape != 0;
    if (middle) s.stages.push_back(stage_of("middle", {0}, true, m));
    if (shape == 2 || shape == 4) s.stages[1].spec.instances = 2;
    s.stages.push_back(stage_of("sink", {middle ? 1U : 0U}, false, m));
    std::string text = std::vector<std::string>{"source, sink", "chain",         "two instances",
                                                "two sinks",    "fork and join", "two joins"}[shape];
    if (shape >= 3) {
        s.stages.push_back(stage_of("side", {1}, false, m));
        if (m.below(3) == 0) {
            s.stages.back().spec.every = 3;
            text += ", every 3";
        }
        if (m.below(3) == 0) {
            s.stages.back().spec.optional = true;
            text += ", optional";
        }
    }
    if (shape >= 4) {  // a sink reads both outputs of the source's fork: its own branch, and the middle's
        ring_setup more;
        more.output = "more";
        more.format = {{"type", "t"}};
        more.slot_bytes = 512;
        s.stages[0].more.push_back(more);
        s.stages[2].spec.input_indices = {1, 0};
        s.stages[2].input_outputs = {0, 1};
    }
    // Both sinks of two joins read both rings, and frames may pass the first one by: its word of a frame is
    // closed before the other sink has the frame.
    const u32 passed = shape == 5 ? 2 : 3;
    if (shape == 5) {
        s.stages[3].spec.input_indices = {1, 0};
        s.stages[3].input_outputs = {0, 1};
        s.stages[3].spec.optional = false;
        s.stages[2].spec.optional = true;
    }
    const u64 ports = m.below(4);
    if (shape >= 3 && (ports == 0 || (ports == 1 && shape == 5))) {
        const bool skips = m.below(3) != 0;
        make_port(s.stages[passed], skips);
        s.stages[passed].spec.optional = false;
        text += skips ? ", a port that skips" : ", a port that waits";
    } else if (ports == 1 && shape != 5) {
        make_port(s.stages[middle ? 2 : 1], false);
        text += ", the sink is a port";
    } else if (ports == 2 && m.below(2) == 0) {
        make_port(s.stages[0], false);
        text += ", the source is a port";
    }
    for (stage_setup& st : s.stages) {
        for (const u32 from : st.spec.input_indices) st.spec.inputs.push_back(s.stages[from].spec.name);
        if (st.spec.optional) r.attendances[st.spec.name].push_back({});
        if (st.spec.optional || st.spec.is_port()) s.end = s.frames = std::min<u64>(s.end + 40, 150);
        if (st.spec.skips()) r.absent.insert(st.spec.name);
    }
    for (u32 k = 0; k < s.stages.size(); ++k)
        if (const stage_spec& spec = s.stages[k].spec; counts_frames(s.stages[k]) && !spec.optional)
            r.must_deliver[k] = spec.every;
    const u64 ending = m.below(4);
#if CAROUSEL_SIMULATED_LINK
    if (ending <= 1 && hosts::can_seal() && !s.stages[0].spec.is_port()) {
        const bool durable = m.below(3) != 0;
        s.stages[0].ends = s.stages[0].forwards_frames = true;
        s.stages[0].spec.max_attempts = 0;
        r.ends_at = s.end;
        s.end = s.frames = s.end + m.below(2) * 1000;
        r.link = make_simulated_link(r, r.ends_at, durable);
        return text + (durable ? ", received durably, " : ", received, ") + std::to_string(r.ends_at) +
               " frames";
    }
#endif
    if (ending == 2) {
        s.stages[0].ends = true;
        r.ends_at = s.end / 2 + m.below(s.end);
        text += ", ends before " + std::to_string(r.ends_at);
    }
    for (const stage_setup& st : s.stages)
        if (st.spec.standby) text += ", standby of " + st.spec.name;
    return text + ", " + std::to_string(s.end) + " frames";
}

}  // namespace carousel::test
