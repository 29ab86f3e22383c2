#pragma once
// A run's state in the forms that programs read: as JSON, as metrics for Prometheus, and as answers to
// probes.

#include <string>

#include "viewer/web/pictures.hpp"
#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

// A run's state as JSON, for the dashboard and for programs. The keys are stable: new keys may be added, but
// if a key is removed or changes its meaning, "version" changes, too. The key of a number ends with its unit
// (_s, _ms, _bytes); shares are 0..1; unknown values are null.
// /status.json:
//   version 2 · phase "waiting" | "running" | "ended" · notice: a sentence, "": no problem ·
//   may_act: false if actions lack the token · read_only: true if the server was started with --read-only ·
//   problems [sentences], as in `carousel ps --json`
//   pipeline {name, state "running" | "starting" | "paused" | "waiting" | ... | "unsupervised", state_text,
//             hindrance: why frames cannot move, "": they can, file, run_id, width, height,
//             frames_per_second_wanted (0: as fast as possible), frames_wanted | null, supervisor_pid, age_s,
//             frames (delivered by every sink), frames_per_second, end_to_end_p50_ms, end_to_end_p99_ms,
//             from_capture_p50_ms and _p99_ms (null: no capture times), restarts,
//             bottleneck {kind "stage" | "gpu" | "pace" | "none" | "paused" | "down" | "unknown",
//                         stage | null, busy | null, text}}
//   stages [{name, device, frames, frames_per_second, busy, wait_input, wait_output, wait_own, wait_turn,
//            latency_p50_ms, latency_p99_ms, end_to_end_p50_ms, end_to_end_p99_ms, from_capture_p50_ms,
//            from_capture_p99_ms (sinks, else null), tombstone_frames, torn_frames, in_flight,
//            settings [{name, value}]: the keys of the pipeline file, as texts,
//            processes [{label, instance, pid, state, paused, restarts, last_exit, cpu_percent, memory_bytes,
//                        age_s, jobs_in_flight}]}]
//   hosts [{name, address, state "running" | "lost" | "ended" | "refused", clock_ahead_ms | null,
//           clock_error_ms | null, text,
//           stages [{label "HOST/STAGE", pid, state, paused, restarts, last_exit, frames_per_second, busy,
//                    wait_input, wait_output, wait_own, wait_turn, cpu_percent, memory_bytes, age_s}]}]:
//          the other hosts of the pipeline; empty: none. Their pids are valid on their hosts only
//   rings [{stage, slot_bytes, memory, window, newest_frame | null, sent_per_second, received_per_second,
//           bytes_per_second,
//           slots [{state "free" | "fill" | "ready" | "leased" | "done" | "quarantined", frame | null}],
//           readers [{stage, kind "blocking" | "latest" | "closed", lag, leased, skipped}]}]
//   picture {width, height, stage, frame, age_s | null, way, problem, watchers, most_watchers, discarded,
//            stream_open: the client named by ?viewer= receives /stream.mjpg (requested with the same name),
//            carries [{name, value}]: the frame's metadata, the used part of its planes, its capture
//            shown [{stage, plane, planes [...], maps [...], channels [...], type, x, y, width, height, zoom,
//            frame, carries,
//                    values null | {low, high, low_text, high_text, colours, ramp ["#rrggbb" ...], below,
//                                   above, nan, infinite, beyond}}]: one or two, with their positions
//            note: why the two do not show the same frame, "": they do · request: requests.hpp}
//   crash null | {stage, how, asked null | "down" | "restart", text, follows | null, old_pid, new_pid | null,
//                 age_s, back_after_s | null}: the last exit of a process; follows: what happens until
//                its successor runs
//   choices [{name, pid, file | null}]: while no run is watched, the runs to choose (POST /runs/NAME/watch)
//   parameters: requests.hpp, as in /parameters.json
//   events [{age_s, kind "info" | "good" | "warning" | "bad", text}], newest last, at most 100
// Latencies, rates and shares are of the last 2 s.
// /history.json: the last two minutes, one entry per 0.25 s, oldest first, for plots:
//   age_s [...] · stages [{name, frames_per_second [...], latency_p99_ms [...]}] ·
//   rings [{stage, bytes_per_second [...]}] · end_to_end_p99_ms [...] · deaths [{age_s, stage}]

/// What a client may do.
struct client_rights {
    bool may_act = false;    ///< the request has the token
    bool read_only = false;  ///< the server sends no command to the run
};

/// The state of the stream, as one viewer sees it.
struct stream_status {
    bool open = false;
    u32 most = 0;  ///< maximum number of viewers at the same time
};
[[nodiscard]] std::string status_json(const view& v, const picture_status& p, const stream_status& stream,
                                      const client_rights& rights, u64 now);
/// Returns one sentence: why frames cannot advance, or that no supervisor controls the run. Returns "" if
/// neither is the case.
[[nodiscard]] std::string hindrance(const view& v);
[[nodiscard]] std::string history_json(const view& v, u64 now);

// The run's metrics in the Prometheus text format (version 0.0.4); metric_table.hpp lists them.

/// Returns the metrics of the run; if there is no run, only carousel_build_info and carousel_up. `now`:
/// CLOCK_MONOTONIC, ns. The instance of a stage has the label stage_instance, because Prometheus itself uses
/// the label `instance` for the scraped address, and would rename a label of that name to exported_instance.
[[nodiscard]] std::string metrics_text(const view& v, u64 now);

// The answers to the probes of a service manager or a container manager. These answers need no token and are
// made from the last view, so a supervisor that hangs does not delay an answer.

struct probe_answer {
    bool ok = false;   ///< 200, else 503
    std::string text;  ///< one sentence
};

/// /healthz: false if no run is watched, if no supervisor controls the run, or if the connection has a
/// problem (view::notice). A run that waits is healthy, and the text contains the reason for the wait
/// (hindrance()). No probe checks for stalls, because the supervisor detects a stall and repairs it or ends
/// the run (stall_timeout_ms).
[[nodiscard]] probe_answer health(const view& v);
/// /readyz: true if the run is healthy, every sink has had a frame, no hindrance() exists, and the run is
/// neither ending nor being rebuilt.
[[nodiscard]] probe_answer readiness(const view& v);

}  // namespace carousel::viewer::web
