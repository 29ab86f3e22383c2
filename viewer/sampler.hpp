#pragma once
// Looks at the run every few milliseconds from a thread of its own, more often than a window draws: so that no death is missed
// between two drawn frames, the timeline has no gaps, and a stage that is always busy is seen to be. Reads only.

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_timeline.hpp"

namespace carousel::viewer {

class sampler {
public:
    /// `c` outlives it.
    explicit sampler(const shm::control_block& c, u64 every_ns = 4'000'000);
    ~sampler();
    sampler(const sampler&) = delete;
    sampler& operator=(const sampler&) = delete;

    /// What was seen since the last call; `busy_ns` as snapshot::stages: time with a frame in work.
    void collect(telemetry::event_tracker& events, telemetry::timeline& bars, std::vector<u64>& busy_ns);

private:
    void loop();

    const shm::control_block* control_;
    u64 every_ns_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    telemetry::event_tracker events_;
    telemetry::timeline bars_;
    std::vector<u64> busy_ns_;
    std::thread thread_;
};

}  // namespace carousel::viewer
