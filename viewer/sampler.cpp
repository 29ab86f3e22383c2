#include "viewer/sampler.hpp"

#include <algorithm>
#include <chrono>

namespace carousel::viewer {

sampler::sampler(const shm::control_block& c, u64 every_ns) : control_(&c), every_ns_(every_ns), thread_([this] { loop(); }) {}

sampler::~sampler() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void sampler::collect(telemetry::event_tracker& events, telemetry::timeline& bars, std::vector<u64>& busy_ns) {
    const std::lock_guard lock(mutex_);
    events.merge(events_);
    bars = bars_;
    busy_ns = busy_ns_;
}

void sampler::loop() {
    telemetry::snapshot s;
    u64 last_ns = 0;
    for (;;) {
        telemetry::read_snapshot(*control_, s);
        std::unique_lock lock(mutex_);
        events_.feed(s);
        bars_.feed(s);
        busy_ns_.resize(s.stages.size());
        for (std::size_t k = 0; k < s.stages.size() && last_ns != 0; ++k) {
            const bool busy = std::any_of(s.jobs.begin(), s.jobs.end(), [k](const telemetry::job_view& j) { return j.stage == k; });
            if (busy) busy_ns_[k] += s.taken_ns - last_ns;
        }
        last_ns = s.taken_ns;
        if (wake_.wait_for(lock, std::chrono::nanoseconds(every_ns_), [this] { return stop_; })) return;
    }
}

}  // namespace carousel::viewer
