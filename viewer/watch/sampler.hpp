#pragma once
// Looks at the run every few milliseconds from a thread of its own, more often than a window draws: so that
// no death is missed between two drawn frames, and the timeline has no gaps. Reads only.

#include <condition_variable>
#include <mutex>
#include <thread>

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

    /// What was seen since the last call.
    void collect(telemetry::event_tracker& events, telemetry::timeline& bars);

private:
    void loop();

    const shm::control_block* control_;
    u64 every_ns_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    telemetry::event_tracker events_;
    telemetry::timeline bars_;
    std::thread thread_;
};

}  // namespace carousel::viewer
