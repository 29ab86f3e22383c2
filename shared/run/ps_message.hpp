#pragma once
// What a supervisor answers to {"command": "ps"}: how the run, its stages and its links are. Written and read
// here; `carousel ps --json` prints it as it came. Read by programs of other versions, too: what an answer
// lacks, or has of another type, is empty here.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"

namespace carousel::run {

/// What a sink has counted between two latencies.
struct counted_latency {
    f64 from_ms = 0, to_ms = 0;
    u64 frames = 0;
};

/// A process of a stage, or its empty seat.
struct ps_stage {
    std::optional<std::string> name;
    std::optional<u32> instance;
    std::optional<i32> pid;                ///< none: it has no process
    std::optional<std::string> state;      ///< running, backoff, ...: seat_state
    std::optional<std::string> waits_for;  ///< "full disk"
    std::optional<std::string> standby;    ///< "ready", "starting"
    std::optional<i32> standby_pid;
    std::optional<f64> age_s;
    std::optional<u32> restarts;
    std::optional<std::string> last_exit;
    std::optional<f64> frames_per_second;  ///< of the stage, as all figures down to wait_turn
    std::optional<u64> frames;
    std::optional<f64> busy, wait_input, wait_output, wait_own, wait_turn;  ///< shares of the last seconds
    std::optional<u64> commits;                                             ///< of this process
    std::optional<f64> cpu_percent;
    std::optional<u64> memory_bytes;                         ///< resident
    std::optional<std::vector<counted_latency>> end_to_end;  ///< of a sink
    std::optional<std::string> device;
    std::optional<u32> in_flight;             ///< frames that its process keeps under way now, at most
    std::optional<std::string> depth_reason;  ///< why so many
    std::optional<bool> graphs;               ///< its process plays a frame's work as one CUDA graph
    /// How it reaches rings on another GPU: "trying", "mapping", "copy"; none: there are none.
    std::optional<std::string> reach;
    std::optional<bool> inputs_guarded;  ///< none: a source, or not known yet
    std::optional<bool> output_guarded;  ///< gaps lie behind the slots; none: a sink, or not known yet
    /// What keeps its own code from writing into the control block: "keys", "pages", "none"; none: not known
    std::optional<std::string> block_guard;
};

/// A ring and who reads it. `stage` is its name: that of the stage before it, behind that one's first output
/// STAGE.OUTPUT.
struct ps_link {
    struct reader {
        std::string stage, group;  ///< group: "blocking", "latest"
        bool port = false;         ///< a place for a program that no supervisor starts
    };
    std::string stage, format, memory;
    u32 slots = 0, window = 0;
    u64 slot_bytes = 0;
    std::vector<reader> readers;
    std::string guard = {};   ///< what lies behind each slot: "gap" or "none"; "": not told
    std::string output = {};  ///< what its stage calls it: STAGE.OUTPUT names it, too; "": nothing
};

/// Another host that the pipeline is on. Its stages are called NAME/STAGE in `stages`.
struct ps_host {
    std::string name, address;
    std::string state;                                  ///< "running", "lost", "ended", "starting"
    std::optional<f64> clock_ahead_ms, clock_error_ms;  ///< of its monotonic clock against this one's
};

/// The MPS domain of a run.
struct ps_mps {
    i32 daemon_pid = 0;
    u32 generation = 0;
    bool up = false;
    u64 domain_faults = 0;
    bool given_up = false;
    bool spare = false;  ///< another daemon stands by
};

struct ps_pipeline {
    std::optional<std::string> name, state, state_text, run_id, file, device;
    std::vector<std::string> waits_for;  ///< stages that are missing
    nlohmann::json bottleneck;           ///< telemetry/bottleneck_json.hpp
    std::optional<i32> pid, owner_pid;
    std::optional<ps_mps> mps;
    std::optional<f64> uptime_s, frames_per_second;
    std::optional<u64> frames, restarts, stalls, damaged;
    /// Stages killed by the state of the frame that they had in hand: idle, open, submitted, committed,
    /// aborted.
    std::array<u64, 5> kills_at{};

    /// "fragment limits: busy 98 %", or "".
    [[nodiscard]] std::string limit() const;
};

struct ps_answer {
    ps_pipeline pipeline;
    std::vector<ps_stage> stages;               ///< all seats, in the order of the file
    std::vector<std::string> problems;          ///< sentences
    std::vector<ps_host> hosts;                 ///< none: the pipeline is on one host
    std::optional<std::vector<ps_link>> links;  ///< nothing: an answer that does not tell them, or not wholly
};

[[nodiscard]] nlohmann::json to_json(const ps_answer& a);
/// Of one link, as `ps` tells it.
[[nodiscard]] nlohmann::json to_json(const ps_link& l);
/// "host b (10.0.0.2): running, its clock is 12.3 ms ahead of this one's (to 0.1 ms)".
[[nodiscard]] std::string describe(const ps_host& h);
/// Never throws.
[[nodiscard]] ps_answer read_ps(const nlohmann::json& answer);

/// How each process works, one sentence for each reason and way: "in flight: vertex 14, fragment 14: 4
/// contexts take turns on the GPU, ...", "graphs: a frame's work is one launch in vertex, fragment",
/// "reach: fragment.1: reaches rings on another GPU by a copy". In the stages' order.
[[nodiscard]] std::vector<std::string> depth_sentences(const ps_answer& a);

/// Stages, and where one has several instances each of them, too: "fragment", "fragment.0", "fragment.1".
/// Sorted.
[[nodiscard]] std::vector<std::string> names_for_commands(const ps_answer& a);

}  // namespace carousel::run
