#pragma once
// The last minutes of a run as series for plots, with its restarts as marks on their time axis. Fixed memory:
// the oldest samples are dropped. One thread per object.

#include <deque>
#include <string>
#include <vector>

#include "telemetry/snapshot_rates.hpp"

namespace carousel::telemetry {

/// One sample. The vectors are indexed like snapshot::stages and snapshot::links.
struct history_sample {
    u64 time_ns = 0;
    std::vector<f32> stage_fps, stage_p50_ms, stage_p99_ms;
    std::vector<f32> link_sent_fps, link_received_fps, link_bytes_per_second;
    f32 end_to_end_p50_ms = 0, end_to_end_p99_ms = 0;  ///< of the slowest sink
    f32 delivered_fps = 0;                             ///< of the slowest sink
};
struct restart_mark {
    u64 time_ns = 0;
    u32 stage = shm::none;
};

class history {
public:
    explicit history(f64 interval_s = 0.1, std::size_t samples = 1200)
        : interval_ns_(static_cast<u64>(interval_s * 1e9)), capacity_(samples) {}
    void feed(const snapshot& s, const rates& r);
    void mark(u64 time_ns, u32 stage);
    void clear();
    [[nodiscard]] const std::deque<history_sample>& samples() const noexcept { return samples_; }
    [[nodiscard]] const std::deque<restart_mark>& marks() const noexcept { return marks_; }

private:
    u64 interval_ns_;
    std::size_t capacity_;
    std::deque<history_sample> samples_;
    std::deque<restart_mark> marks_;
};

}  // namespace carousel::telemetry
