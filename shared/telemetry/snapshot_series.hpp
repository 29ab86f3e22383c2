#pragma once
// Series of successive snapshots: rates, the last minutes for plots, and the last frames as bars.

#include <deque>
#include <string>
#include <vector>

#include "telemetry/snapshot.hpp"

namespace carousel::telemetry {

// Rates from successive snapshots: frames and bytes per second, shares of time, latencies of the last
// seconds. The rates are separate from the snapshot, because a rate needs two snapshots.
// Threading: one thread per object. feed() takes snapshots of one run in order; a snapshot of another run
// restarts the rates.

/// The rates of one stage over the tracker's span.
struct stage_rates {
    f64 frames_per_second = 0;
    stage_shares time;                                 ///< shares of a seat's time
    f64 latency_p50_ms = 0, latency_p99_ms = 0;        ///< claim to commit
    f64 handover_p50_ms = 0, handover_p99_ms = 0;      ///< time from the producer's commit to this stage's
                                                       ///< lease
    f64 end_to_end_p50_ms = 0, end_to_end_p99_ms = 0;  ///< for sinks: time from the source's claim to the
                                                       ///< commit
    /// for sinks: time from a frame's capture to its commit; 0: its source provides no capture time
    f64 from_capture_p50_ms = 0, from_capture_p99_ms = 0;
    f64 helped_per_second = 0;
    bucket_counts latency{};  ///< samples of the span
    bucket_counts end_to_end{}, from_capture{};
};
/// The latencies of the slowest sink; 0: unknown.
struct whole_latency {
    f64 end_to_end_p50_ms = 0, end_to_end_p99_ms = 0;
    f64 from_capture_p50_ms = 0, from_capture_p99_ms = 0;
};
struct link_rates {
    f64 sent_per_second = 0;                  ///< commits into the link
    f64 received_per_second = 0;              ///< number of frames per second that become DONE in all
                                              ///< blocking groups
    f64 bytes_per_second = 0;                 ///< bytes sent: payload and its status word
    std::vector<f64> group_skips_per_second;  ///< indexed as link_view::groups
};
struct rates {
    f64 span_s = 0;                   ///< in seconds; 0: no rates yet
    std::vector<stage_rates> stages;  ///< indexed as snapshot::stages
    std::vector<link_rates> links;    ///< indexed as snapshot::links
    std::vector<f64> cpu;             ///< cores used, indexed as snapshot::seats
};

[[nodiscard]] whole_latency whole_latency_of(const rates& r) noexcept;

class rate_tracker {
public:
    explicit rate_tracker(f64 span_s = 2.0) : span_ns_(static_cast<u64>(span_s * 1e9)) {}
    const rates& feed(const snapshot& s);
    [[nodiscard]] const rates& now() const noexcept { return rates_; }

private:
    std::deque<snapshot> past_;  ///< oldest first, a quarter of the span apart
    u64 span_ns_;
    rates rates_;
};

/// Returns the samples of `now` that are not in `before`.
[[nodiscard]] bucket_counts difference(const bucket_counts& now, const bucket_counts& before) noexcept;

// The last minutes of a run as series for plots; restarts are marks on the time axis. The amount of memory is
// fixed: the oldest samples are dropped. One thread per object.

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

// The last frames as bars per stage: the times at which a stage claimed a frame, submitted it, and found it
// complete. The bars are collected from the slots' headers and from the jobs in progress, over successive
// snapshots; a frame that appeared and disappeared between two snapshots is missing. This is acceptable,
// because the bars only show the last frames. One thread per object.

struct frame_bar {
    u64 ring_sequence = 0;
    u64 born_ns = 0, claimed_ns = 0, submitted_ns = 0;  ///< 0: unknown
    u64 committed_ns = 0;  ///< 0 while the frame is in progress; for a sink, the time of the first snapshot
                           ///< in which the frame was no longer in progress
    u64 done_ns = 0;       ///< the time of the first snapshot in which all blocking readers were done with
                           ///< the frame; 0: not observed
    bool is_tombstone = false;
};

class timeline {
public:
    explicit timeline(std::size_t frames = 512) : capacity_(frames) {}
    void feed(const snapshot& s);
    void clear() { bars_.clear(); }
    /// Indexed like snapshot::stages; frames are in order of their sequence.
    [[nodiscard]] const std::vector<std::vector<frame_bar>>& bars() const noexcept { return bars_; }

private:
    [[nodiscard]] frame_bar& bar_of(u32 stage, u64 ring_sequence);
    void feed_slots(const snapshot& s, u32 stage);
    void feed_jobs(const snapshot& s);

    std::size_t capacity_;
    std::string run_;
    std::vector<std::vector<frame_bar>> bars_;
};

}  // namespace carousel::telemetry
