#pragma once
// The supervisor's answer to {"type": "ps"}: state of the run, its stages and its links. This file writes
// and reads it; `carousel ps --json` prints it unchanged. Programs of other versions read it, too: a field
// that an answer lacks, or that has another type, is empty here.

#include <optional>
#include <string>
#include <vector>

#include "control/seat_counters.hpp"
#include "core/described.hpp"
#include "core/types.hpp"

namespace carousel::run {

/// Number of frames that a sink received with a latency in this range.
struct counted_latency {
    f64 from_ms = 0, to_ms = 0;
    u64 frames = 0;
};
void to_json(nlohmann::json& j, const counted_latency& c);
void from_json(const nlohmann::json& j, counted_latency& c);

/// A process of a stage, or its vacant seat.
struct ps_stage {
    std::optional<std::string> name;
    std::optional<u32> instance;
    std::optional<i32> pid;                ///< none: no process
    std::optional<std::string> state;      ///< running, backoff, ...: seat_state
    std::optional<std::string> waits_for;  ///< "full disk"
    std::optional<std::string> standby;    ///< "ready", "starting"
    std::optional<i32> standby_pid;
    std::optional<u64> standby_memory_bytes;  ///< resident
    std::optional<f64> age_s;
    std::optional<u32> restarts;
    std::optional<std::string> last_exit;
    /// this figure and the following ones, up to wait_turn, are those of the whole stage
    std::optional<f64> frames_per_second;
    std::optional<u64> frames;
    /// shares of the time in the last seconds
    std::optional<f64> busy, wait_input, wait_output, wait_own, wait_turn;
    std::optional<u64> commits;  ///< of this process
    std::optional<f64> cpu_percent;
    std::optional<u64> memory_bytes;                         ///< resident
    std::optional<std::vector<counted_latency>> end_to_end;  ///< of a sink
    std::optional<std::string> device;
    std::optional<u32> in_flight;             ///< present limit of frames in flight in its process
    std::optional<std::string> depth_reason;  ///< reason of that limit
    std::optional<bool> graphs;  ///< the instance's process launches the work of a frame as one CUDA graph
    /// How the process accesses rings on another GPU: "trying", "mapping", "copy"; none: there are no such
    /// rings.
    std::optional<std::string> reach;
    std::optional<bool> inputs_guarded;  ///< none: the stage is a source, or this is not known yet
    /// a gap follows each slot; none: the stage is a sink, or this is not known yet
    std::optional<bool> output_guarded;
    /// Protection of the control block against the stage's own code: "keys", "pages", "none"; none: not
    /// known.
    std::optional<std::string> block_guard;
    std::optional<seat_counters> counters;
    static constexpr field_rules rules{.empty_is_null = true};
};
BOOST_DESCRIBE_STRUCT(ps_stage, (),
                      (name, instance, pid, state, waits_for, standby, standby_pid, standby_memory_bytes,
                       age_s, restarts, last_exit, frames_per_second, frames, busy, wait_input, wait_output,
                       wait_own, wait_turn, commits, cpu_percent, memory_bytes, end_to_end, device, in_flight,
                       depth_reason, graphs, reach, inputs_guarded, output_guarded, block_guard, counters))

/// A ring and its readers. `stage` is the ring's name: the name of the stage that writes the ring, or
/// STAGE.OUTPUT for an output after the first.
struct ps_link {
    struct reader {
        std::string stage, group;  ///< group: "blocking", "latest"
        bool port = false;         ///< the reader is a port, whose program is not started by the supervisor
        static constexpr field_rules rules{.sparse = true};
    };
    std::string stage, format, memory;
    u32 slots = 0, window = 0;
    u64 slot_bytes = 0;
    std::vector<reader> readers;
    std::string guard = {};   ///< what follows each slot: "gap" or "none"; "": not reported
    std::string output = {};  ///< name of the output (also part of STAGE.OUTPUT); "": unnamed
};
BOOST_DESCRIBE_STRUCT(ps_link::reader, (), (stage, group, port))
BOOST_DESCRIBE_STRUCT(ps_link, (), (stage, format, memory, slots, window, slot_bytes, readers, guard, output))

/// Another host of the pipeline. The stages of that host are named NAME/STAGE in `stages`.
struct ps_host {
    std::string name = "?", address = "?";
    std::string state = "?";  ///< "running", "lost", "ended", "refused"
    /// how far that host's clock is ahead of this host's monotonic clock, and the error of this value
    std::optional<f64> clock_ahead_ms, clock_error_ms;
    static constexpr field_rules rules{.empty_is_null = true};
};
BOOST_DESCRIBE_STRUCT(ps_host, (), (name, address, state, clock_ahead_ms, clock_error_ms))

/// The MPS domain of a run.
struct ps_mps {
    i32 daemon_pid = 0;
    u32 generation = 0;
    bool up = false;
    u64 domain_faults = 0;
    bool abandoned = false;
    bool spare = false;  ///< another daemon is ready to take over
};
BOOST_DESCRIBE_STRUCT(ps_mps, (), (daemon_pid, generation, up, domain_faults, abandoned, spare))

/// The stages that have left their GPU, and why.
struct ps_fallback {
    std::vector<std::string> stages;  ///< names of the stages that run on the CPU instead of their GPU
    std::string configured;           ///< their device in the file: "cuda:0"
    std::string why;
    f64 for_s = 0;      ///< how long they have been on the CPU
    u64 fallbacks = 0;  ///< in the whole run
    u64 returns = 0;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(ps_fallback, (), (stages, configured, why, for_s, fallbacks, returns))

/// Numbers of killed stages, grouped by the state of the frame that they were processing.
struct ps_kills {
    u64 idle = 0, open = 0, submitted = 0, committed = 0, aborted = 0;
    /// `at`: by ring::job_state.
    [[nodiscard]] static ps_kills of(const u64 (&at)[5]) noexcept {
        return {at[0], at[1], at[2], at[3], at[4]};
    }
};
BOOST_DESCRIBE_STRUCT(ps_kills, (), (idle, open, submitted, committed, aborted))

struct ps_pipeline {
    std::optional<std::string> name, state, state_text, run_id, file, device;
    std::vector<std::string> waits_for;  ///< stages without a process
    nlohmann::json bottleneck;           ///< telemetry/bottleneck.hpp
    std::optional<i32> pid, owner_pid;
    std::optional<ps_mps> mps;
    std::optional<ps_fallback> fallback;  ///< none: no stage of the run can leave its GPU
    std::optional<f64> uptime_s, frames_per_second;
    std::optional<u64> frames, restarts, stalls, damaged;
    std::optional<u64> repaired_words, rebuilds, adoptions;
    ps_kills kills_at;

    /// "bottleneck: fragment (busy 98 %)", or "".
    [[nodiscard]] std::string limit() const;
    static constexpr field_rules rules{.empty_is_null = true};
};
BOOST_DESCRIBE_STRUCT(ps_pipeline, (),
                      (name, state, state_text, waits_for, bottleneck, pid, run_id, owner_pid, mps, fallback,
                       file, device, uptime_s, frames, restarts, stalls, damaged, repaired_words, rebuilds,
                       adoptions, kills_at, frames_per_second))

struct ps_answer {
    ps_pipeline pipeline;
    std::vector<ps_stage> stages;               ///< all seats, in the order of the pipeline file
    std::vector<std::string> problems;          ///< sentences
    std::vector<ps_host> hosts;                 ///< empty: the pipeline runs on one host
    std::optional<std::vector<ps_link>> links;  ///< none: the answer has no links, or not all of them
    bool ok = true;
    static constexpr field_rules rules{.empty_is_null = true};
};
BOOST_DESCRIBE_STRUCT(ps_answer, (), (ok, pipeline, stages, problems, hosts, links))

[[nodiscard]] nlohmann::json to_json(const ps_answer& a);
/// One link, as in the answer to `ps`.
[[nodiscard]] nlohmann::json to_json(const ps_link& l);
/// "host b (10.0.0.2): running, its clock is 12.3 ms ahead of this host's clock (within 0.1 ms)".
[[nodiscard]] std::string describe(const ps_host& h);
/// "vertex, fragment are on the CPU instead of cuda:0: cuda:0 can't be used by vertex; `carousel device
/// cuda:0` returns them"; "": every stage is on its device.
[[nodiscard]] std::string describe(const ps_fallback& f);
/// Never throws.
[[nodiscard]] ps_answer read_ps(const nlohmann::json& answer);

/// Settings of each process, one sentence per reason and method: "in flight: vertex 14, fragment 14: 4
/// contexts take turns on the GPU, ...", "graphs: a frame's work is one launch in vertex, fragment", "reach:
/// fragment.1: reaches rings on another GPU by a copy". In the order of the stages.
[[nodiscard]] std::vector<std::string> depth_sentences(const ps_answer& a);

/// Names of the stages, and of each instance if a stage has several: "fragment", "fragment.0", "fragment.1".
/// Sorted.
[[nodiscard]] std::vector<std::string> names_for_commands(const ps_answer& a);

}  // namespace carousel::run
