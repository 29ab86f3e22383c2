#pragma once
// The stages' shares of time: over the last seconds for `ps`, and from the first to the last frame for the
// report. In a run that was taken over, both the shares and the rate count from the takeover.

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
    /// To be called at the first frame: the measured time begins.
    void begin(const shm::control_block& c, u64 now);
    /// Called in each tick.
    void tick(const shm::control_block& c, u64 now);
    /// To be called when the last frame is delivered or the run is abandoned; only the first call has an
    /// effect.
    void finish(const shm::control_block& c, u64 now);

    /// Indexed like run_setup::stages, measured over about the last 2 s; empty before there are two samples.
    [[nodiscard]] std::vector<telemetry::stage_shares> recent() const;
    /// Over the whole run; before finish(), up to the last tick; empty if no frame was made.
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

/// The bottleneck in the form of bottleneck_json.hpp, from these shares and the state of the seats. `seats`
/// is null if the run is over: all seats then count as up.
[[nodiscard]] nlohmann::json bottleneck_of(const run_setup& s,
                                           const std::vector<telemetry::stage_shares>& shares,
                                           const seat_list* seats);

/// True if frames bypass the optional stage because all of its instances have failed. For a stage that is
/// down or in backoff, the others wait as for any other stage.
[[nodiscard]] bool is_excluded(const run_setup& setup, const seat_list& seats, u32 stage);

/// A stage that the others wait for, that has no process and will not get one within moments.
struct missing_stage {
    /// "is down", "is in backoff" (after deaths without a frame), "has failed", "is being ended"
    std::string name, how;
};
[[nodiscard]] std::vector<missing_stage> missing_stages(const run_setup& s, const seat_list& seats);

}  // namespace carousel::supervisor
