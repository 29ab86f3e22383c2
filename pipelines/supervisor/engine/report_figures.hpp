#pragma once
// Figures of a run for its report and for `ps`: its duration, the stages' shares of time, and what its frames
// carried.

#include <deque>
#include <vector>

#include "core/json.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/process_table.hpp"
#include "telemetry/bottleneck.hpp"

namespace carousel::supervisor {

// Computes the duration of a run's frames from timestamps that the stages write themselves. The supervisor
// checks the block only at each tick of 20 ms, and a short run begins and ends between two ticks. Both
// functions only read the block. A word that a crash left unwritten, or that is damaged, has a value outside
// of `earliest` .. `latest` (CLOCK_MONOTONIC), and is ignored.

/// Time at which a source claimed the first frame of the run. Returns `latest` if the control block does not
/// store the time.
[[nodiscard]] u64 first_frame_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept;
/// Time at which a sink committed the newest frame. Returns `latest` if no word contains the time.
[[nodiscard]] u64 last_delivery_ns(const shm::control_block& c, u64 earliest, u64 latest) noexcept;

// Measures the stages' shares of time: over the last seconds for `ps`, and from the first to the last frame
// for the report. In a run that was taken over, both the shares and the rate count from the takeover.

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

    /// Returns the shares over about the last 2 s, indexed like run_setup::stages; empty before there are two
    /// samples.
    [[nodiscard]] std::vector<telemetry::stage_shares> recent() const;
    /// Returns the shares over the whole run; before finish() was called, the shares up to the last tick.
    /// Empty if no frame was made.
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

/// The bottleneck in the form of bottleneck.hpp, derived from these shares and the states of the seats.
/// `seats` is null if the run is over; in this case all seats count as up.
[[nodiscard]] nlohmann::json bottleneck_of(const run_setup& s,
                                           const std::vector<telemetry::stage_shares>& shares,
                                           const seat_list* seats);

/// A stage for which other stages wait, but which has no process and will not have one soon.
struct missing_stage {
    /// "is down", "is in backoff" (after deaths without a frame), "has failed", "is being ended"
    std::string name, how;
};
[[nodiscard]] std::vector<missing_stage> missing_stages(const run_setup& s, const seat_list& seats);

// Describes the contents of the frames of a run, for its report.

/// Describes the newest frame that stage `stage` committed to output `output` and that all readers of the
/// output have received: {frame, tombstone, capture_clock, capture_ns, metadata, metadata_omitted, used,
/// sampled (only with sampled inputs)}. Returns null if there is no such frame, or if the frame carries none
/// of these facts.
[[nodiscard]] nlohmann::json carried_json(const stage_setup& st, const shm::control_block& c, u32 stage,
                                          u32 output = 0);

}  // namespace carousel::supervisor
