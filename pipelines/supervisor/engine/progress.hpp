#pragma once
// Frames and rates of the running pipeline, and the progress line: updated in place on a terminal, printed
// every 2 s elsewhere.

#include <string>
#include <vector>

#include "os/console.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Number of frames that have reached every blocking sink (0-based: the first frame that has not).
[[nodiscard]] u64 delivered(const run_setup& s, const shm::control_block& c) noexcept;

/// Frames per second, over about the last second.
class rate {
public:
    void sample(u64 count, u64 now) noexcept;
    [[nodiscard]] f64 per_second() const noexcept { return per_second_; }

private:
    u64 count_ = 0, at_ns_ = 0;
    f64 per_second_ = 0;
};

class progress {
public:
    progress(const run_setup& s, console& out);
    /// Called at each tick.
    void tick(const shm::control_block& c, u64 restarts, const std::string& state, u64 now);
    [[nodiscard]] f64 frames_per_second() const noexcept { return total_.per_second(); }
    [[nodiscard]] f64 frames_per_second(u32 stage) const noexcept { return stages_[stage].per_second(); }

private:
    const run_setup* setup_;
    console* console_;
    rate total_;
    std::vector<rate> stages_;
    u64 shown_ns_ = 0;
};

}  // namespace carousel::supervisor
