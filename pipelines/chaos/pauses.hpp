#pragma once
// Measures how long stages deliver no frame: a thread polls their frame counters in the control block
// (read-only, twice per millisecond). A pause is a time in which the stage finishes no frame, if that time is
// longer than 2 ms and longer than 3 times the stage's usual time between two frames.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor::chaos {

struct pause {
    u32 stage = 0;
    u64 begin_ns = 0;  ///< time of the last frame before the pause
    u64 due_ns = 0;    ///< moment at which the time without a frame became longer than usual
    u64 end_ns = 0;
};

class pause_watch {
public:
    /// Throws shm_error if the run's control block can't be read.
    explicit pause_watch(const std::string& run_id);
    ~pause_watch();
    pause_watch(const pause_watch&) = delete;
    pause_watch& operator=(const pause_watch&) = delete;

    /// Fixes the usual time between two frames; called before the first fault, after some time without
    /// faults.
    void calm_is_over();
    /// Returns the pauses that have ended, in the order of their ends, then the pauses still in progress,
    /// with the current time as their end.
    [[nodiscard]] std::vector<pause> pauses() const;
    [[nodiscard]] u64 frames() const noexcept {
        return frames_.load(std::memory_order_relaxed);
    }  ///< of the slowest stage

private:
    void poll();
    struct watched {
        u64 frames = 0, first = 0;  ///< the counter's present value, and its value when the watch began
        u64 changed_ns = 0;
        u64 limit_ns = 0;  ///< a longer time without a frame is a pause
    };
    std::vector<watched> stages_;
    mutable std::mutex mutex_;  // protects pauses_ and stages_, which are not shared with other processes
    std::vector<pause> pauses_;
    u64 begun_ns_;
    std::atomic<u64> frames_{0};
    std::atomic<bool> over_{false};
    bool calm_ = true;
    struct observed;
    std::unique_ptr<observed> run_;
    std::thread thread_;
};

/// Returns the length in ms of the longest pause of a stage other than `stage` (~0: of any stage); 0: no
/// pause. Counts only the pauses that became longer than usual after `begin_ns` and that began before
/// `end_ns`.
[[nodiscard]] f64 longest_pause_ms(const std::vector<pause>& all, u32 stage, u64 begin_ns, u64 end_ns);

}  // namespace carousel::supervisor::chaos
