#include "viewer/web/metric_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/enum_names.hpp"
#include "shm/control_block.hpp"
#include "viewer/web/status.hpp"

namespace carousel::viewer::web {

BOOST_DESCRIBE_ENUM(metric_type, gauge, counter, histogram)
const char* name_of(metric_type t) noexcept { return enum_name(t); }

namespace {

using telemetry::snapshot;
using telemetry::stage_view;
using out = metric_samples;

f64 seconds(u64 ns) { return static_cast<f64>(ns) / 1e9; }
f64 seconds_since(u64 then, u64 now) { return seconds(now - std::min(now, then)); }

std::string label(const char* key, const std::string& value) {
    std::string escaped;
    for (const char c : value) {
        if (c == '\\' || c == '"') escaped += '\\';
        escaped += c == '\n' ? ' ' : c;
    }
    return fmt::format("{}=\"{}\"", key, escaped);
}

std::string instance_labels(const std::string& stage, u32 instance) {
    return fmt::format("{},stage_instance=\"{}\"", label("stage", stage), instance);
}
std::string instance_labels(const seat_report& r) {
    return instance_labels(r.name.value_or("?"), r.instance.value_or(0));
}
std::string instance_labels(const snapshot& s, u32 seat) {
    return instance_labels(s.stage_name(s.seats[seat].stage), s.seats[seat].instance);
}

template <typename F>
void each_stage(const view& v, out& o, F value) {
    for (const stage_view& st : v.snap.stages) o.add(label("stage", st.name), static_cast<f64>(value(st)));
}

/// For the supervisor's counters of each instance, which outlive the supervisor.
template <typename F>
void each_instance(const view& v, F f) {
    if (!v.last_known) return;
    for (const seat_report& r : v.last_known->seats)
        if (r.counters) f(r, *r.counters);
}

/// For values of the present, which are known only while a supervisor answers.
template <typename T>
void each_report(const view& v, out& o, std::optional<T> run::ps_stage::*value) {
    for (const seat_report& r : v.report)
        if (r.*value) o.add(instance_labels(r), static_cast<f64>(*(r.*value)));
}

void add_known(const view& v, out& o, std::optional<u64> run::ps_pipeline::*value) {
    if (v.last_known && v.last_known->whole.*value)
        o.add("", static_cast<f64>(*(v.last_known->whole.*value)));
}

template <typename F>
void each_sink(const view& v, out& o, F counts) {
    for (const stage_view& st : v.snap.stages)
        if (st.is_sink()) o.add_histogram(label("stage", st.name), counts(st));
}

void slots_by_state(const view& v, u64, out& o) {
    using telemetry::slot_phase;
    constexpr std::array phases{slot_phase::free,   slot_phase::fill, slot_phase::ready,
                                slot_phase::leased, slot_phase::done, slot_phase::quarantined};
    for (const telemetry::link_view& l : v.snap.links)
        for (const slot_phase p : phases)
            o.add(fmt::format("{},{}", label("ring", l.name), label("state", telemetry::name_of(p))),
                  static_cast<f64>(std::count_if(l.slots.begin(), l.slots.end(),
                                                 [&](const auto& s) { return s.phase == p; })));
}

template <typename F>
void each_ring(const view& v, out& o, F value) {
    for (const telemetry::link_view& l : v.snap.links)
        o.add(label("ring", l.name), static_cast<f64>(value(l)));
}

template <typename F>
void each_reader(const view& v, out& o, ring::group_state kind, F value) {
    for (const telemetry::link_view& l : v.snap.links)
        for (const telemetry::group_view& g : l.groups)
            if (g.state == kind && g.stage != shm::none)
                o.add(
                    fmt::format("{},{}", label("ring", l.name), label("reader", v.snap.stage_name(g.stage))),
                    static_cast<f64>(value(g)));
}

// A stage commits each of its frames into all of its outputs. The stage's counter is used instead of the
// ring's, because a rebuild of the rings keeps only the former.
u64 frames_of_producer(const view& v, const telemetry::link_view& l) {
    return l.stage < v.snap.stages.size() ? v.snap.stages[l.stage].frames : l.committed;
}

using enum metric_type;

const metric_row table[] = {
    {"carousel_build_info", gauge, "", "version, control_version",
     "1; the labels have the program's version.",
     [](const view&, u64, out& o) {
         o.add(fmt::format("version=\"{}\",control_version=\"{}\"", CAROUSEL_VERSION, shm::control_version),
               1);
     },
     true},
    {"carousel_up", gauge, "", "", "1 while the pipeline runs.",
     [](const view& v, u64, out& o) { o.add("", v.phase == run_phase::running ? 1 : 0); }, true},
    {"carousel_supervisor_up", gauge, "", "",
     "1 while a supervisor controls the run; without one, the stages continue for supervisor_grace_s.",
     [](const view& v, u64, out& o) { o.add("", v.led ? 1 : 0); }},
    {"carousel_frames_can_move", gauge, "", "",
     "0 while a required stage is paused or down, or no supervisor controls the run; else 1.",
     [](const view& v, u64, out& o) { o.add("", hindrance(v).empty() ? 1 : 0); }},
    {"carousel_problems", gauge, "", "", "Problems that `carousel ps` lists; missing without a supervisor.",
     [](const view& v, u64, out& o) {
         if (!v.whole.state.empty()) o.add("", static_cast<f64>(v.whole.problems.size()));
     }},
    {"carousel_run_age_seconds", gauge, "seconds", "",
     "Time since the control block was created, at the start of the run or at its last rebuild.",
     [](const view& v, u64 now, out& o) { o.add("", seconds_since(v.snap.created_ns, now)); }},
    {"carousel_supervisor_silence_seconds", gauge, "seconds", "",
     "Time since the supervisor's last heartbeat.",
     [](const view& v, u64 now, out& o) { o.add("", seconds_since(v.snap.supervisor_heartbeat_ns, now)); }},
    {"carousel_supervisor_adoptions_total", counter, "", "",
     "Times that a supervisor has adopted the run after the death of the previous one.",
     [](const view& v, u64, out& o) { add_known(v, o, &run::ps_pipeline::adoptions); }},
    {"carousel_stages_off_gpu", gauge, "", "",
     "Stages that run on the CPU instead of their GPU, because that has failed or on request.",
     [](const view& v, u64, out& o) {
         if (v.last_known && v.last_known->whole.fallback)
             o.add("", static_cast<f64>(v.last_known->whole.fallback->stages.size()));
     }},
    {"carousel_fallbacks_total", counter, "", "", "Times that stages moved from their GPU to the CPU.",
     [](const view& v, u64, out& o) {
         if (v.last_known && v.last_known->whole.fallback)
             o.add("", static_cast<f64>(v.last_known->whole.fallback->fallbacks));
     }},
    {"carousel_rebuilds_total", counter, "", "", "Times that the control block and the rings were rebuilt.",
     [](const view& v, u64, out& o) { add_known(v, o, &run::ps_pipeline::rebuilds); }},
    {"carousel_stalls_total", counter, "", "", "Times that no frame advanced for stall_timeout_ms.",
     [](const view& v, u64, out& o) { add_known(v, o, &run::ps_pipeline::stalls); }},
    {"carousel_control_block_damage_total", counter, "", "",
     "Times that damage of the control block was found that needs a rebuild.",
     [](const view& v, u64, out& o) { add_known(v, o, &run::ps_pipeline::damaged); }},
    {"carousel_control_block_repaired_words_total", counter, "", "",
     "Words of the control block that were repaired in place.",
     [](const view& v, u64, out& o) { add_known(v, o, &run::ps_pipeline::repaired_words); }},
    {"carousel_mps_domain_faults_total", counter, "", "",
     "Times that the MPS domain was renewed; missing without MPS.",
     [](const view& v, u64, out& o) {
         if (v.last_known && v.last_known->whole.mps)
             o.add("", static_cast<f64>(v.last_known->whole.mps->domain_faults));
     }},
    {"carousel_parameter_changes_total", counter, "", "",
     "Times that parameters were set or reset since the start of the run.",
     [](const view& v, u64, out& o) { o.add("", static_cast<f64>(v.snap.parameter_number)); }},

    {"carousel_frames_total", counter, "", "stage", "Frames that a stage has committed.",
     [](const view& v, u64, out& o) { each_stage(v, o, [](const stage_view& s) { return s.frames; }); }},
    {"carousel_lost_frames_total", counter, "", "stage",
     "Frames that a sink has missed, by its ledger; must be 0.",
     [](const view& v, u64, out& o) {
         for (const auto& [stage, d] : v.files.sinks) o.add(label("stage", stage), static_cast<f64>(d.lost));
     }},
    {"carousel_repeated_frames_total", counter, "", "stage",
     "Frames that a sink has committed again, by its ledger; must be 0.",
     [](const view& v, u64, out& o) {
         for (const auto& [stage, d] : v.files.sinks)
             o.add(label("stage", stage), static_cast<f64>(d.repeated));
     }},
    {"carousel_torn_frames_total", counter, "", "stage",
     "Frames that were overwritten while they were read, as their status words showed; must be 0.",
     [](const view& v, u64, out& o) { each_stage(v, o, [](const stage_view& s) { return s.torn; }); }},
    {"carousel_dead_letters_total", counter, "", "stage, stage_instance",
     "Frames that a stage has given up after max_attempts; each has a dead letter.",
     [](const view& v, u64, out& o) {
         each_instance(v, [&](const seat_report& r, const run::seat_counters& c) {
             o.add(instance_labels(r), static_cast<f64>(c.abandoned));
         });
     }},
    {"carousel_tombstone_frames_total", counter, "", "stage",
     "Frames that a stage forwarded without a payload, because they were given up after max_attempts.",
     [](const view& v, u64, out& o) { each_stage(v, o, [](const stage_view& s) { return s.tombstones; }); }},
    {"carousel_helped_frames_total", counter, "", "stage",
     "Frames of a stage that a reader has committed for it.",
     [](const view& v, u64, out& o) { each_stage(v, o, [](const stage_view& s) { return s.helped; }); }},
    {"carousel_revoked_commits_total", counter, "", "stage",
     "Commits of replaced processes that were refused.",
     [](const view& v, u64, out& o) {
         each_stage(v, o, [](const stage_view& s) { return s.revoked_commits; });
     }},
    {"carousel_stage_frames_in_flight", gauge, "", "stage", "Frames in progress in a stage.",
     [](const view& v, u64, out& o) {
         for (u32 k = 0; k < v.snap.stages.size(); ++k)
             o.add(label("stage", v.snap.stages[k].name),
                   static_cast<f64>(std::count_if(v.snap.jobs.begin(), v.snap.jobs.end(),
                                                  [&](const auto& j) { return j.stage == k; })));
     }},
    {"carousel_stage_busy_seconds_total", counter, "seconds", "stage",
     "Time with a frame in progress, counted while it lasts; summed over instances.",
     [](const view& v, u64, out& o) {
         each_stage(v, o, [](const stage_view& s) { return seconds(s.time.busy_ns); });
     }},
    {"carousel_stage_wait_input_seconds_total", counter, "seconds", "stage",
     "Time without an input frame, or before a source's next frame is due.",
     [](const view& v, u64, out& o) {
         each_stage(v, o, [](const stage_view& s) { return seconds(s.time.wait_input_ns); });
     }},
    {"carousel_stage_wait_output_seconds_total", counter, "seconds", "stage",
     "Time without a free slot in the stage's output ring, because readers have not finished.",
     [](const view& v, u64, out& o) {
         each_stage(v, o, [](const stage_view& s) { return seconds(s.time.wait_output_ns); });
     }},
    {"carousel_stage_wait_own_seconds_total", counter, "seconds", "stage",
     "Time spent waiting for the stage's own earlier frames.",
     [](const view& v, u64, out& o) {
         each_stage(v, o, [](const stage_view& s) { return seconds(s.time.wait_own_ns); });
     }},
    {"carousel_stage_wait_turn_seconds_total", counter, "seconds", "stage",
     "Time spent waiting for another stage's turn on the GPU.",
     [](const view& v, u64, out& o) {
         each_stage(v, o, [](const stage_view& s) { return seconds(s.time.wait_turn_ns); });
     }},
    {"carousel_stage_latency_seconds", histogram, "seconds", "stage",
     "From a stage's claim of a frame to its commit.",
     [](const view& v, u64, out& o) {
         for (const stage_view& s : v.snap.stages) o.add_histogram(label("stage", s.name), s.latency);
     }},
    {"carousel_handover_latency_seconds", histogram, "seconds", "stage",
     "From a producer's commit of a frame to the stage's lease.",
     [](const view& v, u64, out& o) {
         for (const stage_view& s : v.snap.stages)
             if (!s.inputs.empty()) o.add_histogram(label("stage", s.name), s.handover);
     }},
    {"carousel_end_to_end_latency_seconds", histogram, "seconds", "stage",
     "From the source's claim of a frame to a sink's commit.",
     [](const view& v, u64, out& o) {
         each_sink(
             v, o, [](const stage_view& s) -> const auto& { return s.end_to_end; });
     }},
    {"carousel_from_capture_latency_seconds", histogram, "seconds", "stage",
     "From the capture time that the source has set to a sink's commit; missing without capture times.",
     [](const view& v, u64, out& o) {
         for (const stage_view& s : v.snap.stages)
             if (s.is_sink() &&
                 std::any_of(s.from_capture.begin(), s.from_capture.end(), [](u64 n) { return n != 0; }))
                 o.add_histogram(label("stage", s.name), s.from_capture);
     }},

    {"carousel_stage_up", gauge, "", "stage, stage_instance", "1 while a process of the stage is running.",
     [](const view& v, u64, out& o) {
         for (u32 k = 0; k < v.snap.seats.size(); ++k)
             o.add(instance_labels(v.snap, k), v.snap.seats[k].state == ring::entry_state::live ? 1 : 0);
     }},
    {"carousel_stage_paused", gauge, "", "stage, stage_instance", "1 while a user has paused the stage.",
     [](const view& v, u64, out& o) {
         for (u32 k = 0; k < v.snap.seats.size(); ++k)
             o.add(instance_labels(v.snap, k), v.snap.seats[k].paused ? 1 : 0);
     }},
    {"carousel_stage_info", gauge, "", "stage, stage_instance, device",
     "1; the label has the stage's device.",
     [](const view& v, u64, out& o) {
         each_instance(v, [&](const seat_report& r, const run::seat_counters&) {
             if (r.device) o.add(fmt::format("{},{}", instance_labels(r), label("device", *r.device)), 1);
         });
     }},
    {"carousel_standby_ready", gauge, "", "stage, stage_instance",
     "1 while a warm standby is ready; missing without a standby or without a supervisor.",
     [](const view& v, u64, out& o) {
         for (const seat_report& r : v.report)
             if (r.standby) o.add(instance_labels(r), *r.standby == "ready" ? 1 : 0);
     }},
    {"carousel_stage_restarts_total", counter, "", "stage, stage_instance",
     "Processes that replaced an earlier process.",
     [](const view& v, u64, out& o) {
         each_instance(v, [&](const seat_report& r, const run::seat_counters&) {
             o.add(instance_labels(r), r.restarts.value_or(0));
         });
     }},
    {"carousel_stage_exits_total", counter, "", "stage, stage_instance, reason",
     "Processes that ended before the end of the run. Reasons: deadline, exit, gpu_fault, injected, "
     "mps_domain, "
     "out_of_memory, port, rebuild, requested, signal.",
     [](const view& v, u64, out& o) {
         each_instance(v, [&](const seat_report& r, const run::seat_counters& c) {
             // also reasons without an end, because increase() does not count the first sample of a series
             for (const std::string& reason : enum_names<run::exit_reason>()) {
                 const auto at = c.exits.find(reason);
                 o.add(fmt::format("{},{}", instance_labels(r), label("reason", reason)),
                       at == c.exits.end() ? 0 : static_cast<f64>(at->second));
             }
         });
     }},
    {"carousel_takeover_duration_seconds", histogram, "seconds", "stage, stage_instance, standby",
     "From the death of a process to its successor's first commit, if one supervisor has observed both.",
     [](const view& v, u64, out& o) {
         each_instance(v, [&](const seat_report& r, const run::seat_counters& c) {
             o.add_histogram(instance_labels(r) + ",standby=\"false\"", c.takeovers);
             if (r.standby) o.add_histogram(instance_labels(r) + ",standby=\"true\"", c.standby_takeovers);
         });
     }},
    {"carousel_stage_cpu_seconds_total", counter, "seconds", "stage, stage_instance",
     "CPU time of a stage's processes up to their last heartbeats, dead ones included.",
     [](const view& v, u64, out& o) {
         each_instance(v, [&](const seat_report& r, const run::seat_counters& c) {
             o.add(instance_labels(r), seconds(c.cpu_ns));
         });
     }},
    {"carousel_stage_memory_bytes", gauge, "bytes", "stage, stage_instance",
     "Resident memory of the stage's process; missing without a supervisor.",
     [](const view& v, u64, out& o) { each_report(v, o, &run::ps_stage::memory_bytes); }},
    {"carousel_stage_gpu_memory_bytes", gauge, "bytes", "stage, stage_instance",
     "GPU memory of the stage's process on all GPUs, by NVML; missing if NVML does not report it.",
     [](const view& v, u64, out& o) {
         for (const seat_report& r : v.report)
             if (r.gpu_bytes != 0) o.add(instance_labels(r), static_cast<f64>(r.gpu_bytes));
     }},

    {"carousel_ring_slots", gauge, "", "ring, state",
     "Slots of a ring. States: free, fill, ready, leased, done, quarantined.", slots_by_state},
    {"carousel_ring_window_frames", gauge, "", "ring",
     "Frames by which a producer may be ahead of its readers.",
     [](const view& v, u64, out& o) { each_ring(v, o, [](const auto& l) { return l.window; }); }},
    {"carousel_ring_depth_frames", gauge, "", "ring",
     "Frames by which a producer is ahead of its slowest blocking reader.",
     [](const view& v, u64, out& o) { each_ring(v, o, [](const auto& l) { return l.ahead(); }); }},
    {"carousel_ring_lag_frames", gauge, "", "ring, reader",
     "Frames that a blocking reader has yet to finish.",
     [](const view& v, u64, out& o) {
         each_reader(v, o, ring::group_state::blocking, [](const auto& g) { return g.lag; });
     }},
    {"carousel_ring_memory_bytes", gauge, "bytes", "ring", "Memory of a ring's slots.",
     [](const view& v, u64, out& o) {
         each_ring(v, o, [](const auto& l) { return l.slots.size() * l.slot_bytes; });
     }},
    {"carousel_ring_bytes_total", counter, "bytes", "ring",
     "Bytes of the slots that a producer has committed.",
     [](const view& v, u64, out& o) {
         each_ring(v, o, [&](const auto& l) {
             return static_cast<f64>(frames_of_producer(v, l)) * static_cast<f64>(l.slot_bytes);
         });
     }},
    {"carousel_ring_skipped_frames_total", counter, "", "ring, reader",
     "Frames that a latest reader has skipped; restarts at 0 after a rebuild of the rings.",
     [](const view& v, u64, out& o) {
         each_reader(v, o, ring::group_state::latest, [](const auto& g) { return g.skipped; });
     }},
    {"carousel_recording_bytes", gauge, "bytes", "stage", "Size of the file that a recorder writes.",
     [](const view& v, u64, out& o) {
         for (const auto& [stage, bytes] : v.files.recorded_bytes)
             o.add(label("stage", stage), static_cast<f64>(bytes));
     }},

    // The counters of another host's stages are not here, because each host reports its own.
    {"carousel_host_up", gauge, "", "host", "1 while another host of the pipeline answers.",
     [](const view& v, u64, out& o) {
         for (const host_report& h : v.hosts) o.add(label("host", h.name), h.is_there() ? 1 : 0);
     }},
    {"carousel_host_clock_ahead_seconds", gauge, "seconds", "host",
     "Offset of the other host's monotonic clock from the monotonic clock of this host.",
     [](const view& v, u64, out& o) {
         for (const host_report& h : v.hosts)
             if (h.clock_ahead_ms) o.add(label("host", h.name), *h.clock_ahead_ms / 1e3);
     }},
    {"carousel_host_clock_error_seconds", gauge, "seconds", "host",
     "Uncertainty of carousel_host_clock_ahead_seconds.",
     [](const view& v, u64, out& o) {
         for (const host_report& h : v.hosts)
             if (h.clock_error_ms) o.add(label("host", h.name), *h.clock_error_ms / 1e3);
     }},
};

}  // namespace

std::span<const metric_row> metric_rows() noexcept { return table; }

}  // namespace carousel::viewer::web
