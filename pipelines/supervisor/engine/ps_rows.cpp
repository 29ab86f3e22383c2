#include "supervisor/engine/ps_rows.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "shm/process_id.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/device_switch.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/mps/mps_domain.hpp"
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/plan_text.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/watch.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "telemetry/depth.hpp"
#include "telemetry/histogram.hpp"

namespace carousel::supervisor {
namespace {

/// Returns the latencies that a sink has counted, each from the source's claim to the sink's commit; empty
/// for other stages.
std::optional<std::vector<run::counted_latency>> counted_latencies(const stage_setup& st,
                                                                   const shm::word* buckets) {
    if (!st.is_sink()) return std::nullopt;
    const auto ms = [](u32 bucket) { return static_cast<f64>(telemetry::upper_ns(bucket)) / 1e6; };
    std::vector<run::counted_latency> out;
    for (u32 k = 0; k < shm::latency_buckets; ++k)
        if (const u64 count = ring::load(buckets[k]); count > 0)
            out.push_back({k == 0 ? 0.0 : ms(k - 1), ms(k), count});
    return out;
}

/// Returns what the process has waited for, in the words of `ps`, if the wait has lasted for long; "": it
/// does not wait for long. The process may be one of another host, or of a port, which has no such word.
std::string long_wait(const shm::control_block& c, const process& p, u64 now) {
    constexpr u64 long_ms = 1000, recent_ns = 200 * ns_per_ms;
    const shm::incarnation& e = c.entry[p.incarnation.entry];
    // the process is stopped, so its word may be out of date
    if (now > ring::load(e.heartbeat_ns) + recent_ns) return "";
    const auto w = ring::wait_word::of(ring::load(e.waiting));
    if (w.kind == ring::wait_kind::none || now / ns_per_ms < w.since_ms + long_ms) return "";
    if (w.kind == ring::wait_kind::turn) return "its turn on the GPU";
    if (w.link >= std::min(c.links, shm::max_links)) return w.kind == ring::wait_kind::frame ? "a frame" : "";
    const shm::link_block& l = c.link[w.link];
    const std::string ring(l.name, strnlen(l.name, sizeof l.name));
    return w.kind == ring::wait_kind::frame ? "a frame of " + ring : "a free slot of " + ring;
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

run::ps_stage row_of(const ps_sources& in, const seat& s, const std::vector<telemetry::stage_shares>& shares,
                     u64 now) {
    const stage_setup& st = in.setup.stages[s.stage];
    const shm::control_block& c = in.block.block();
    run::ps_stage row;
    row.name = st.spec.name;
    row.instance = s.instance;
    row.state = name_of(s.machine.state());
    if (s.now && !s.now->ended && s.machine.state() == seat_state::running)
        if (std::string wait = long_wait(c, *s.now, now); !wait.empty()) row.waits_for = std::move(wait);
    if (full_disk_since_ns(c, s) != 0) row.waits_for = "full disk";
    if (link_since_ns(c, s) != 0) row.waits_for = "another host";
    if (st.spec.standby) row.standby = s.standby && s.standby->standing_by ? "ready" : "starting";
    if (s.standby) {
        row.standby_pid = s.standby->pid;
        row.standby_memory_bytes = shm::resident_bytes(s.standby->pid);
    }
    row.restarts = s.restarts;
    if (!s.last_exit.empty()) row.last_exit = s.last_exit;
    row.frames_per_second = in.rates.frames_per_second(s.stage);
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
    row.counters = counters_of(in.seats, s);
    if (s.now) add_process(row, *s.now, c, st, now);
    return row;
}

}  // namespace

run::ps_answer ps_answer_of(const ps_sources& in) {
    const u64 now = now_ns();
    const std::vector<telemetry::stage_shares> shares = in.times.recent();
    run::ps_answer a;
    run::ps_pipeline& p = a.pipeline;
    p.name = in.setup.name;
    p.state = in.phase.name();
    p.state_text = in.phase.text();
    for (const missing_stage& m : missing_stages(in.setup, in.seats.seats)) p.waits_for.push_back(m.name);
    p.bottleneck = bottleneck_of(in.setup, shares, &in.seats.seats);
    p.pid = ::getpid();
    p.run_id = in.run_id;
    if (in.memory.owner_pidfd() >= 0) p.owner_pid = in.memory.owner_pid();
    if (const mps_domain* domain = in.seats.domain; domain != nullptr)
        p.mps = run::ps_mps{domain->daemon_pid(),
                            domain->generation(),
                            domain->is_up(),
                            in.seats.account.domain_faults,
                            in.seats.account.domain_abandoned,
                            domain->has_spare()};
    p.file = in.setup.file;
    p.device = in.setup.device_name;
    p.fallback = in.devices.shown(now);
    p.uptime_s = static_cast<f64>(now - in.facts.started_ns) / 1e9;
    p.frames = delivered(in.setup, in.block.block());
    p.restarts = in.seats.account.restarts;
    p.stalls = in.facts.repairs.stalls;
    p.damaged = in.facts.repairs.damaged;
    p.repaired_words = in.facts.repairs.words;
    p.rebuilds = in.facts.rebuilds;
    p.adoptions = in.facts.taken_over;
    p.kills_at = run::ps_kills::of(in.seats.account.kills_at);
    p.frames_per_second = in.rates.frames_per_second();
    for (const auto& s : in.seats.seats) a.stages.push_back(row_of(in, *s, shares, now));
    a.problems = in.degraded.present(now).get<std::vector<std::string>>();
    if (p.fallback && !p.fallback->stages.empty()) a.problems.push_back(run::describe(*p.fallback));
    a.links = links_of(in.setup);
    in.extensions.each([&](const run_extension& e) { e.add_to(a); });
    return a;
}

}  // namespace carousel::supervisor
