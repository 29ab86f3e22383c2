#pragma once
// The other hosts of a pipeline and their stages, as reported by this host's supervisor (`ps`); the local
// control block contains no data about them.

#include <optional>
#include <string>
#include <vector>

#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_rates.hpp"

namespace carousel::run {
struct ps_answer;
}

namespace carousel::viewer {

/// A process of a remote stage, or its empty seat.
struct remote_seat {
    std::string label;             ///< "b/sink", "b/sink.1": the stage's name in commands
    std::string state, last_exit;  ///< the supervisor's words
    i32 pid = 0;                   ///< pid on that host; 0: none
    u32 restarts = 0;
    std::optional<f64> frames_per_second, cpu_percent, age_s;
    std::optional<telemetry::stage_shares> time;
    u64 memory_bytes = 0;
    [[nodiscard]] bool is_paused() const noexcept { return state == "stopped"; }
};
struct host_report {
    std::string name, address;
    std::string state;                                  ///< "running", "lost", "ended", "refused"
    std::optional<f64> clock_ahead_ms, clock_error_ms;  ///< difference of its monotonic clock from that of
                                                        ///< this host
    std::string text;                                   ///< the same as text, as printed by `ps`
    std::vector<remote_seat> seats;                     ///< in the order of the pipeline file
    [[nodiscard]] bool is_there() const noexcept { return state == "running"; }
};

/// Returns whether the name is that of a stage of another host: "b/sink".
[[nodiscard]] inline bool is_remote(const std::string& stage) noexcept {
    return stage.find('/') != std::string::npos;
}
[[nodiscard]] std::vector<host_report> host_reports(const run::ps_answer& a);
/// The events between two reports: a host that was lost or is back, a remote stage that was replaced. `now`:
/// their time, in ns.
[[nodiscard]] std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                                        const std::vector<host_report>& after, u64 now);

}  // namespace carousel::viewer
