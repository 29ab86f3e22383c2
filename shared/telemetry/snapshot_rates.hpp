#pragma once
// Rates from successive snapshots: frames and bytes per second, shares of time, latencies of the last
// seconds. Separate from the snapshot, because a rate needs two snapshots.
//
// Threading: one thread per object. feed() takes snapshots of one run in order; a snapshot of another run
// restarts it.

#include <deque>
#include <string>
#include <vector>

#include "telemetry/snapshot.hpp"

namespace carousel::telemetry {

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

}  // namespace carousel::telemetry
