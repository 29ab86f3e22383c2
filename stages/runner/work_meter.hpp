#pragma once
// Measures the time per frame on the device, as observed by the stage's waiting thread: from the time when
// the frame is submitted and has become the oldest one until it completes. If contexts take turns, the first
// frame of a turn has also waited for the frames of the other contexts, so the 40 % quantile of the last 64
// frames is used instead of the mean: such frames are few as soon as several are in flight. A thread that
// wakes late finds the next frames already complete, which appears as less work and so leads to more depth,
// the harmless direction of error.

#include <algorithm>
#include <array>

#include "core/types.hpp"

namespace carousel::stages {

class work_meter {
public:
    /// Adds one frame. Times in ns of CLOCK_MONOTONIC: when the frame was submitted, when the thread began to
    /// wait for it, and when it was complete.
    void add(u64 submitted, u64 wait_began, u64 complete) noexcept {
        const u64 began = std::max(submitted, wait_began);
        spans_[count_++ % spans_.size()] = complete > began ? complete - began : 1;
    }
    /// True after enough frames since the last reading, or after enough time with at least one.
    [[nodiscard]] bool due(u64 now) const noexcept {
        return count_ - read_ >= spans_.size() || (count_ > read_ && now - read_ns_ >= period_ns);
    }
    /// Returns ns per frame; 0: no frame yet.
    [[nodiscard]] u64 read(u64 now) noexcept {
        read_ = count_;
        read_ns_ = now;
        const std::size_t n = std::min<u64>(count_, spans_.size());
        if (n == 0) return 0;
        std::array<u64, 64> sorted = spans_;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((n - 1) * 2 / 5);
        std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(n));
        return *middle;
    }

private:
    static constexpr u64 period_ns = 250'000'000;
    std::array<u64, 64> spans_{};
    u64 count_ = 0, read_ = 0, read_ns_ = 0;
};

}  // namespace carousel::stages
