#pragma once
// The stages of a pipeline and its other hosts, as this host's supervisor reports them (`ps`): states that
// the control block does not contain, and the stages of other hosts, whose blocks are not available here.

#include <optional>
#include <string>
#include <vector>

#include "control/ps_message.hpp"
#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"

namespace carousel::viewer {

/// A process of a stage, or its vacant seat, of this host or another one. Empty fields: not known.
struct seat_report : run::ps_stage {
    std::string label;  ///< its name in commands: "fragment.1", "b/sink"
    u64 gpu_bytes = 0;  ///< on all GPUs of this host; 0: none, or unknown
    [[nodiscard]] bool is_paused() const noexcept { return state == "stopped"; }
    [[nodiscard]] std::optional<telemetry::stage_shares> shares() const noexcept;
};

struct host_report : run::ps_host {
    std::string text;                ///< all of it in words, as `ps` prints it
    std::vector<seat_report> seats;  ///< in the order of the pipeline file
    [[nodiscard]] bool is_there() const noexcept { return state == "running"; }
};

/// The stages of this host.
[[nodiscard]] std::vector<seat_report> seat_reports(const run::ps_answer& a);
/// The other hosts.
[[nodiscard]] std::vector<host_report> host_reports(const run::ps_answer& a);
/// The report on a seat of this host's control block, or null.
[[nodiscard]] const seat_report* report_of(const std::vector<seat_report>& all,
                                           const telemetry::snapshot& block, u32 seat) noexcept;
/// The events between two reports: a host that was lost or is back, a remote stage that was replaced. `now`:
/// their time, in ns.
[[nodiscard]] std::vector<telemetry::run_event> changes(const std::vector<host_report>& before,
                                                        const std::vector<host_report>& after, u64 now);

}  // namespace carousel::viewer
