#pragma once
// The entry's clock of host work, where several threads may be at it: it runs since the oldest piece of what
// is under way has begun. So a piece that hangs is found by its own deadline, whatever comes and goes beside
// it, and none is charged with the time of another.

#include <map>
#include <mutex>

#include "core/clock.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

class finish_clock {
public:
    explicit finish_clock(shm::word& since_ns) noexcept : since_ns_(&since_ns) {}

    /// A piece of work is under way as long as this object lives. Any thread.
    class running {
    public:
        explicit running(finish_clock& of) : of_(&of), number_(of.begin()) {}
        ~running() { of_->end(number_); }
        running(const running&) = delete;
        running& operator=(const running&) = delete;

    private:
        finish_clock* of_;
        u64 number_;
    };

    /// Whatever is under way counts as begun now.
    void restart() noexcept {
        const std::lock_guard lock(mutex_);
        const u64 now = now_ns();
        for (auto& [number, since] : under_way_) since = now;
        publish();
    }

private:
    u64 begin() {
        const std::lock_guard lock(mutex_);
        under_way_.emplace(++last_, now_ns());
        publish();
        return last_;
    }
    void end(u64 number) noexcept {
        const std::lock_guard lock(mutex_);
        under_way_.erase(number);
        publish();
    }
    // Numbers grow with time, so the first has begun first.
    void publish() noexcept {
        const shm::block_open open;
        since_ns_->store(under_way_.empty() ? 0 : under_way_.begin()->second, std::memory_order_release);
    }

    shm::word* since_ns_;
    std::mutex mutex_;  ///< this process's own
    u64 last_ = 0;
    std::map<u64, u64> under_way_;  ///< number to its begin
};

}  // namespace carousel::stages
