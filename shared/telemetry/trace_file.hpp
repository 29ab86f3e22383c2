#pragma once
// A trace in the JSON format of ui.perfetto.dev and chrome://tracing: one process track per stage, threads
// for the lanes of its instances, one bar per frame with its phases inside, flows that join one frame's bars,
// counters, and events of the stages.
// A frame belongs to the trace if its source claimed it after the start of the trace; in that case every
// later stage also claimed the frame after the start. If an owner died between its commit and its last
// timestamp, the bar ends where the frame was next observed downstream.

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/snapshot.hpp"
#include "telemetry/trace_reader.hpp"

namespace carousel::telemetry {

/// An event of a seat, as reported by the supervisor.
struct trace_note {
    u64 time_ns = 0;
    u32 seat = 0, epoch = 0;
    std::string kind;  ///< "started", "died", ...
    std::string text;  ///< "died: signal 9 (SIGKILL); 2 frames in flight"
};
/// Numbers of buffers in use at one point in time, one number per link.
struct trace_fill {
    u64 time_ns = 0;
    std::vector<u32> buffers;
};

/// Maps {stage that produced the frame, sequence} to the frame's metadata as a JSON object; contains only
/// frames whose header was read.
using trace_facts = std::map<std::pair<u32, u64>, std::string>;

/// Another host of the pipeline: the offset of that host's monotonic clock from the clock of this host.
struct trace_clock {
    f64 ahead_ms = 0, error_ms = 0;
};

struct trace_content {
    const snapshot* shape = nullptr;  ///< snapshot taken at the end: stages, seats, links, tails
    const std::vector<attempt>* attempts = nullptr;
    const std::vector<idle_time>* waits = nullptr;
    std::vector<trace_note> notes;
    std::vector<trace_fill> fills;
    trace_facts facts;
    std::map<std::string, trace_clock> clocks;  ///< other hosts' clocks, by host; used to join the traces of
                                                ///< several hosts
    u64 begin_ns = 0, end_ns = 0;
    u64 overwritten = 0, unfinished = 0;
    std::string ending;  ///< "the pipeline ended after 1.2 s", or ""
};

struct trace_summary {
    u64 frames = 0;           ///< number of frames that passed every stage within the trace
    u64 first = 0, last = 0;  ///< their sequences
    /// number of bars of these frames that are missing in blocking stages; 0 if no records were lost
    u64 missing = 0;
    u64 lost_attempts = 0;  ///< number of attempts whose work was discarded by a death
    u64 deaths = 0;         ///< number of deaths between the start and the end of the recording
};

/// The complete trace as JSON; fills in `out`. Throws no errors of its own.
[[nodiscard]] std::string trace_json(const trace_content& c, trace_summary& out);

// Joins traces of one pipeline over several hosts into one: times of the other hosts are converted to the
// clock of the host of `carousel run`, their stages are called HOST/STAGE, and each frame has one flow
// through all hosts.

struct named_trace {
    std::string host;  ///< name of the host in the pipeline file
    std::string text;  ///< trace_json(), recorded on that host
};
/// `coordinator`: trace_json() of the host of `carousel run`, which has the other hosts' clocks. `warnings`:
/// one sentence for each host whose trace is incomplete. Throws config_error for a text that is not a trace,
/// or a host whose clock is missing in `coordinator`.
[[nodiscard]] std::string join_traces(const std::string& coordinator, const std::vector<named_trace>& others,
                                      std::vector<std::string>* warnings = nullptr);

}  // namespace carousel::telemetry
