#pragma once
// Plays recorded frames at the pace at which they were recorded.

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "core/types.hpp"

namespace carousel {

class recorded_pace {
public:
    /// `rate`: relative to the recorded pace: 1 as recorded, 2 twice as fast, 0 without waiting.
    explicit recorded_pace(f64 rate = 0) noexcept : rate_(rate) {}

    /// Waits until the frame with that time is due, at most half a second, because a frame has a deadline.
    /// The first frame and a frame with an earlier time than the previous one (after a loop) are due at once.
    /// If a frame is late by less than 0.1 s, the delay does not postpone the next frame.
    void wait_for(u64 time_ns) {
        if (rate_ == 0) return;
        u64 due = 0;
        if (last_time_ns_ != 0 && time_ns > last_time_ns_) {
            const auto rest = static_cast<u64>(static_cast<f64>(time_ns - last_time_ns_) / rate_);
            due = last_played_ns_ + std::min(rest, longest_wait_ns);
            if (const u64 now = now_ns(); due > now)
                std::this_thread::sleep_for(std::chrono::nanoseconds(due - now));
        }
        last_time_ns_ = time_ns;
        const u64 now = now_ns();
        last_played_ns_ = due + most_catching_up_ns > now ? due : now;
    }

private:
    static constexpr u64 longest_wait_ns = 500'000'000, most_catching_up_ns = 100'000'000;

    f64 rate_;
    u64 last_time_ns_ = 0, last_played_ns_ = 0;  ///< of the previous frame, in the recording and in this run
};

}  // namespace carousel
