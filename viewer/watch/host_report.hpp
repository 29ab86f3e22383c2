#pragma once
// The other hosts of a pipeline, and their stages, as the supervisor beside us tells of them (`ps`): nothing
// of theirs lies in the control block here.

#include <optional>
#include <string>
#include <vector>

#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_rates.hpp"

namespace carousel::run {
struct ps_answer;
}

namespace carousel::viewer {

/// A process of a stage there, or its empty seat.
struct remote_seat {
    std::string label;             ///< "b/sink", "b/sink.1": what commands call it
    std::string state, last_exit;  ///< the supervisor's words
    i32 pid = 0;                   ///< there; 0: none
    u32 restarts = 0;
    std::optional<f64> frames_per_second, cpu_percent, age_s;
    std::optional<telemetry::stage_shares> time;
    u64 memory_bytes = 0;
    [[nodiscard]] bool is_paused() const noexcept { return state == "stopped"; }
};
struct host_report {
    std::string name, address;
    std::string state;                                  ///< "running", "lost", "ended", "refused"
    std::optional<f64> clock_ahead_ms, clock_error_ms;  ///< of its monotonic clock against ours
    std::string text;                                   ///< all this, as `ps` says it
    std::vector<remote_seat> seats;                     ///< in the order of the file
    [[nodiscard]] bool is_there() const noexcept { return state == "running"; }
};

/// "b/sink" is a stage of another host.
[[nodiscard]] inline bool is_remote(const std::string& stage) noexcept {
    return stage.find('/') != std::string::npos;
}
[[nodiscard]] std::vector<host_report> host_reports(const run::ps_answer& a);
/// What has happened between two reports: a host that is lost or back, a stage there that was replaced.
[[nodiscard]] std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                                        const std::vector<host_report>& after, u64 now);

}  // namespace carousel::viewer
