#pragma once
// The entry's clock of host work that several threads may do concurrently: it runs from the start of the
// oldest piece of work in progress. So a piece that hangs is detected by its own deadline, regardless of
// other work that starts and ends concurrently, and the time of one piece is never counted for another one.

#include <map>
#include <mutex>

#include "core/clock.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"

namespace carousel::stages {

class finish_clock {
public:
    explicit finish_clock(shm::word& since_ns) noexcept : since_ns_(&since_ns) {}

    /// A piece of work is in progress while this object exists. Any thread.
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

    /// Counts all work in progress as begun now.
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
    // Numbers increase with time, so the first element of the map began first.
    void publish() noexcept {
        const shm::block_open open;
        since_ns_->store(under_way_.empty() ? 0 : under_way_.begin()->second, std::memory_order_release);
    }

    shm::word* since_ns_;
    std::mutex mutex_;  ///< process-local
    u64 last_ = 0;
    std::map<u64, u64> under_way_;  ///< maps a number to its start time in ns
};

}  // namespace carousel::stages
