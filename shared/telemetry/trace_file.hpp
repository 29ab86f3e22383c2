#pragma once
// A trace in the JSON form that ui.perfetto.dev and chrome://tracing read: a process track a stage, threads
// for the lanes of its instances, a bar for each frame with its phases inside, flows that join one frame's
// bars, counters, and what befell the stages.
//
// A frame belongs to the trace when its source claimed it behind the beginning: then every later stage did,
// too. Where an owner died between its commit and its last stamp, the bar ends where the frame was seen
// further down.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/snapshot.hpp"
#include "telemetry/trace_reader.hpp"

namespace carousel::telemetry {

/// Something that happened to a seat, as the supervisor tells it.
struct trace_note {
    u64 time_ns = 0;
    u32 seat = 0, epoch = 0;
    std::string kind;  ///< "started", "died", ...
    std::string text;  ///< "died: signal 9 (SIGKILL); 2 frames in flight"
};
/// Buffers in use at a moment, one number a link.
struct trace_fill {
    u64 time_ns = 0;
    std::vector<u32> buffers;
};

/// What frames carry, {stage that put it out, sequence} -> a JSON object; of those that were seen in passing.
using trace_facts = std::map<std::pair<u32, u64>, std::string>;

/// Another host of the pipeline: its monotonic clock against this one's.
struct trace_clock {
    f64 ahead_ms = 0, error_ms = 0;
};

struct trace_content {
    const snapshot* shape = nullptr;  ///< taken at the end: stages, seats, links, tails
    const std::vector<attempt>* attempts = nullptr;
    const std::vector<idle_time>* waits = nullptr;
    std::vector<trace_note> notes;
    std::vector<trace_fill> fills;
    trace_facts facts;
    std::map<std::string, trace_clock> clocks;  ///< by host; so that traces of several can be joined
    u64 begin_ns = 0, end_ns = 0;
    u64 overwritten = 0, unfinished = 0;
    std::string ending;  ///< "the pipeline ended after 1.2 s", or ""
};

struct trace_summary {
    u64 frames = 0;           ///< that went through every stage inside the trace
    u64 first = 0, last = 0;  ///< their sequences
    /// bars that one of those frames lacks in some blocking stage: 0 unless records were lost
    u64 missing = 0;
    u64 lost_attempts = 0;  ///< work that a death has thrown away
    u64 deaths = 0;         ///< between the beginning of the recording and its end
};

/// The whole text. Throws nothing of its own.
[[nodiscard]] std::string trace_json(const trace_content& c, trace_summary& out);

}  // namespace carousel::telemetry
