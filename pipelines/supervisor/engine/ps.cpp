// engine: the contents of `carousel ps`.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "shm/process_id.hpp"
#include "supervisor/engine/engine.hpp"
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/links.hpp"
#include "supervisor/processes/watch.hpp"
#include "telemetry/depth.hpp"
#include "telemetry/histogram.hpp"

namespace carousel::supervisor {
namespace {

/// The latencies that a sink has counted, from the source's claim to the commit; nothing for other stages.
std::optional<std::vector<run::counted_latency>> counted_latencies(const stage_setup& st,
                                                                   const shm::word* buckets) {
    if (st.has_output()) return std::nullopt;
    const auto ms = [](u32 bucket) { return static_cast<f64>(telemetry::upper_ns(bucket)) / 1e6; };
    std::vector<run::counted_latency> out;
    for (u32 k = 0; k < shm::latency_buckets; ++k)
        if (const u64 count = ring::load(buckets[k]); count > 0)
            out.push_back({k == 0 ? 0.0 : ms(k - 1), ms(k), count});
    return out;
}

void add_process(run::ps_stage& row, const process& p, const shm::control_block& c, const stage_setup& of,
                 u64 now) {
    row.pid = p.pid;
    row.age_s = static_cast<f64>(now - p.spawned_ns) / 1e9;
    row.commits = ring::load(c.entry[p.incarnation.entry].commits);
    if (!p.elsewhere) row.memory_bytes = shm::resident_bytes(p.pid);  // else another process's pid
    const u32 guard = c.entry[p.incarnation.entry].guard;
    const bool is_mapped = (guard & shm::memory_guard::mapped) != 0;
    if (is_mapped && !of.spec.inputs.empty())
        row.inputs_guarded = (guard & shm::memory_guard::inputs_writable) == 0;
    if (is_mapped && of.has_output())
        row.output_guarded =
            (guard & shm::memory_guard::output_gaps) != 0 ||
            has_canaries(c, c.seat[std::min(p.incarnation.seat, shm::max_seats - 1)].stage, of);
    if (is_mapped)
        row.block_guard = (guard & shm::memory_guard::block_keys) != 0    ? "keys"
                          : (guard & shm::memory_guard::block_pages) != 0 ? "pages"
                                                                          : "none";
    const auto depth = telemetry::depth_view::of(ring::load(c.entry[p.incarnation.entry].depth));
    if (depth.why == telemetry::depth_reason::unknown) return;
    row.in_flight = depth.lanes;
    row.depth_reason = depth.reason();
    row.graphs = depth.graphs;
    if (depth.reach != telemetry::reach_state::none) row.reach = telemetry::name_of(depth.reach);
}

}  // namespace

std::string engine::state_name() const {
    switch (phase_) {
        case phase::draining:
            return "stopping";
        case phase::leaving:
            return "done";
        case phase::ending:
            return "ending";
        case phase::rebuilding:
            return "rebuilding";
        case phase::running:
            break;
    }
    if (!missing_stages(*setup_, seats_->seats).empty()) return "waiting";
    bool starting = false;
    for (const auto& s : seats_->seats) {
        if (s->machine.paused()) return "paused";
        starting = starting || s->machine.state() == seat_state::starting;
    }
    return starting ? "starting" : "running";
}

// "waiting: fragment is down, vertex is in backoff", "paused: fragment": for display.
std::string engine::state_text() const {
    std::string text = state_name();
    const char* between = ": ";
    if (text == "paused")
        for (const auto& s : seats_->seats)
            if (s->machine.paused()) text += std::exchange(between, ", ") + s->label;
    if (text != "waiting") return text;
    for (const missing_stage& m : missing_stages(*setup_, seats_->seats))
        text += std::exchange(between, ", ") + m.name + " " + m.how;
    return text;
}

run::ps_stage engine::row_of(const seat& s, const std::vector<telemetry::stage_shares>& shares,
                             u64 now) const {
    const stage_setup& st = setup_->stages[s.stage];
    const shm::control_block& c = segment_->block();
    run::ps_stage row;
    row.name = st.spec.name;
    row.instance = s.instance;
    row.state = name_of(s.machine.state());
    if (full_disk_since_ns(c, s) != 0) row.waits_for = "full disk";
    if (link_since_ns(c, s) != 0) row.waits_for = "another host";
    if (st.spec.standby) row.standby = s.standby && s.standby->standing_by ? "ready" : "starting";
    if (s.standby) row.standby_pid = s.standby->pid;
    row.restarts = s.restarts;
    if (!s.last_exit.empty()) row.last_exit = s.last_exit;
    row.frames_per_second = progress_.frames_per_second(s.stage);
    row.frames = ring::load(c.stage[s.stage].counters.frames);
    if (!shares.empty()) {
        const telemetry::stage_shares& share = shares[s.stage];
        row.busy = share.busy;
        row.wait_input = share.wait_input;
        row.wait_output = share.wait_output;
        row.wait_own = share.wait_own;
        row.wait_turn = share.wait_turn;
    }
    row.cpu_percent = s.cpu_percent;
    row.end_to_end = counted_latencies(st, c.stage[s.stage].counters.end_to_end);
    row.device = st.device_name_of(s.instance);
    if (s.now) add_process(row, *s.now, c, st, now);
    return row;
}

run::ps_answer engine::carry_out(const run::ps_request&) const {
    const u64 now = now_ns();
    const std::vector<telemetry::stage_shares> shares = times_.recent();
    run::ps_answer a;
    run::ps_pipeline& p = a.pipeline;
    p.name = setup_->name;
    p.state = state_name();
    p.state_text = state_text();
    for (const missing_stage& m : missing_stages(*setup_, seats_->seats)) p.waits_for.push_back(m.name);
    p.bottleneck = bottleneck_of(*setup_, shares, &seats_->seats);
    p.pid = ::getpid();
    p.run_id = run_id_;
    if (memory_.owner_pidfd() >= 0) p.owner_pid = memory_.owner_pid();
    if (domain_)
        p.mps = run::ps_mps{domain_->daemon_pid(),
                            domain_->generation(),
                            domain_->is_up(),
                            seats_->account.domain_faults,
                            seats_->account.domain_abandoned,
                            domain_->has_spare()};
    p.file = setup_->file;
    p.device = setup_->device_name;
    p.uptime_s = static_cast<f64>(now - started_ns_) / 1e9;
    p.frames = delivered(*setup_, segment_->block());
    p.restarts = seats_->account.restarts;
    p.stalls = repairs_.stalls;
    p.damaged = repairs_.damaged;
    std::copy_n(seats_->account.kills_at, p.kills_at.size(), p.kills_at.begin());
    p.frames_per_second = progress_.frames_per_second();
    for (const auto& s : seats_->seats) a.stages.push_back(row_of(*s, shares, now));
    a.problems = problems_.present(now).get<std::vector<std::string>>();
    a.links = links_of(*setup_);
    if (hosts_ != nullptr) hosts_->add_to(a);
    return a;
}

}  // namespace carousel::supervisor
