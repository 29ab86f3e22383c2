#include "viewer/watch/sampler.hpp"

#include <chrono>

namespace carousel::viewer {

sampler::sampler(const shm::control_block& c, u64 every_ns)
    : control_(&c), every_ns_(every_ns), thread_([this] { loop(); }) {}

sampler::~sampler() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void sampler::collect(telemetry::event_tracker& events, telemetry::timeline& bars) {
    const std::lock_guard lock(mutex_);
    events.merge(events_);
    bars = bars_;
}

void sampler::loop() {
    telemetry::snapshot s;
    for (;;) {
        telemetry::read_snapshot(*control_, s);
        std::unique_lock lock(mutex_);
        events_.feed(s);
        bars_.feed(s);
        if (wake_.wait_for(lock, std::chrono::nanoseconds(every_ns_), [this] { return stop_; })) return;
    }
}

}  // namespace carousel::viewer
