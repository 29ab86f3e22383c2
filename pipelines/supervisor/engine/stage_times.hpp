#pragma once
// The stages' time while the run is watched: of the last seconds for `ps`, and from the first frame to the
// last for the report (a run that another supervisor began counts from where this one took it over, as its
// rate does).

#include <deque>
#include <vector>

#include "core/json.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "telemetry/bottleneck.hpp"

namespace carousel::supervisor {

class stage_times {
public:
    explicit stage_times(const run_setup& s) : setup_(&s) {}
    /// The first frame is made: the run's time begins.
    void begin(const shm::control_block& c, u64 now);
    /// At each tick.
    void tick(const shm::control_block& c, u64 now);
    /// The last frame is delivered, or the run was given up; the first call counts.
    void finish(const shm::control_block& c, u64 now);

    /// As run_setup::stages; of about the last 2 s; empty before anything is known.
    [[nodiscard]] std::vector<telemetry::stage_shares> recent() const;
    /// Of the whole run; before finish() up to the last tick; empty when no frame was made.
    [[nodiscard]] std::vector<telemetry::stage_shares> whole() const;

private:
    struct sample {
        u64 at_ns = 0;
        std::vector<telemetry::stage_time> stages;
    };
    [[nodiscard]] sample take_sample(const shm::control_block& c, u64 now) const;
    [[nodiscard]] std::vector<telemetry::stage_shares> between(const sample& before,
                                                               const sample& after) const;

    const run_setup* setup_;
    sample begun_, finished_;
    std::deque<sample> past_;  ///< oldest first
};

/// What limits, as bottleneck_json.hpp writes it, by these shares and what the supervisor knows of the seats;
/// `seats` null: all of them are up (a run that is over).
[[nodiscard]] nlohmann::json bottleneck_of(const run_setup& s,
                                           const std::vector<telemetry::stage_shares>& shares,
                                           const seat_list* seats);

/// Frames pass the optional stage by: all of its instances have failed. One that is down or in backoff is
/// waited for as any other stage.
[[nodiscard]] bool is_excluded(const run_setup& setup, const seat_list& seats, u32 stage);

/// A stage that the others wait for, and none of its instances has a process, nor will have one in a moment.
struct missing_stage {
    /// "is down", "is in backoff" (after deaths without a frame), "has failed", "is being ended"
    std::string name, how;
};
[[nodiscard]] std::vector<missing_stage> missing_stages(const run_setup& s, const seat_list& seats);

}  // namespace carousel::supervisor
