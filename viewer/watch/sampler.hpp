#pragma once
// A thread that takes a snapshot of the run every few milliseconds. Snapshots are taken more often than the
// window draws, so that no death between two drawn frames is missed and the timeline has no gaps. Read-only.

#include <condition_variable>
#include <mutex>
#include <thread>

#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"

namespace carousel::viewer {

class sampler {
public:
    /// `c` must outlive the sampler.
    explicit sampler(const shm::control_block& c, u64 every_ns = 4'000'000);
    ~sampler();
    sampler(const sampler&) = delete;
    sampler& operator=(const sampler&) = delete;

    /// Adds the events since the last call to `events`, and sets `bars` to the timeline up to now.
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
