#include "chaos/pauses.hpp"

#include <algorithm>
#include <chrono>

#include "core/clock.hpp"
#include "ring/words.hpp"
#include "shm/segment.hpp"

namespace carousel::supervisor::chaos {
namespace {
constexpr u64 least_ns = 2 * ns_per_ms;
constexpr std::size_t most_pauses = 2'000'000;
}  // namespace

struct pause_watch::observed {
    shm::segment segment;
};

pause_watch::pause_watch(const std::string& run_id)
    : begun_ns_(now_ns()), run_(std::make_unique<observed>(observed{shm::segment::observe(run_id)})) {
    const shm::control_block& c = run_->segment.block();
    stages_.resize(std::min(c.stages, shm::max_stages));
    for (std::size_t k = 0; k < stages_.size(); ++k)
        stages_[k].frames = stages_[k].first = ring::load(c.stage[k].counters.frames);
    for (watched& w : stages_) w.changed_ns = begun_ns_;
    thread_ = std::thread([this] {
        while (!over_.load(std::memory_order_relaxed)) {
            poll();
            std::this_thread::sleep_for(std::chrono::microseconds(500));
        }
    });
}

pause_watch::~pause_watch() {
    over_ = true;
    thread_.join();
}

void pause_watch::poll() {
    const shm::control_block& c = run_->segment.block();
    const u64 now = now_ns();
    u64 least = ~u64{0};
    const std::lock_guard lock(mutex_);
    for (u32 k = 0; k < stages_.size(); ++k) {
        watched& w = stages_[k];
        const u64 frames = ring::load(c.stage[k].counters.frames);
        least = std::min(least, frames);
        if (frames == w.frames) continue;
        if (!calm_ && now - w.changed_ns > w.limit_ns && pauses_.size() < most_pauses)
            pauses_.push_back({k, w.changed_ns, w.changed_ns + w.limit_ns, now});
        w.frames = frames;
        w.changed_ns = now;
    }
    if (!stages_.empty()) frames_.store(least, std::memory_order_relaxed);
}

void pause_watch::calm_is_over() {
    const std::lock_guard lock(mutex_);
    const u64 now = now_ns();
    for (watched& w : stages_)
        w.limit_ns = std::max(least_ns, 3 * (now - begun_ns_) / std::max<u64>(1, w.frames - w.first));
    calm_ = false;
}

std::vector<pause> pause_watch::pauses() const {
    const std::lock_guard lock(mutex_);
    std::vector<pause> all = pauses_;
    const u64 now = now_ns();
    for (u32 k = 0; k < stages_.size(); ++k)
        if (!calm_ && now - stages_[k].changed_ns > stages_[k].limit_ns)
            all.push_back({k, stages_[k].changed_ns, stages_[k].changed_ns + stages_[k].limit_ns, now});
    return all;
}

f64 longest_pause_ms(const std::vector<pause>& all, u32 stage, u64 begin_ns, u64 end_ns) {
    u64 longest = 0;
    for (const pause& p : all)
        if (p.stage != stage && p.due_ns > begin_ns && p.begin_ns < end_ns)
            longest = std::max(longest, p.end_ns - p.begin_ns);
    return static_cast<f64>(longest) / 1e6;
}

}  // namespace carousel::supervisor::chaos
