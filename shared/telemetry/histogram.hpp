#pragma once
// Latency histograms in shared memory: log-linear, 8 buckets per octave from 1 us to over an hour, so the
// relative error of a percentile is at most 1/8. Counting a sample is one relaxed add; any process may read
// the counts at any time.

#include <bit>

#include "shm/control_block.hpp"

namespace carousel::telemetry {

/// Returns the bucket of a duration; always below latency_buckets.
[[nodiscard]] inline u32 bucket_of(u64 ns) noexcept {
    if (ns < 1024) return 0;
    const u32 octave = 63U - static_cast<u32>(std::countl_zero(ns));  // >= 10
    const u32 part = static_cast<u32>(ns >> (octave - 3U)) & 7U;
    const u32 bucket = (octave - 10U) * 8U + part + 1U;
    return bucket < shm::latency_buckets ? bucket : shm::latency_buckets - 1U;
}

/// The smallest duration above the bucket.
[[nodiscard]] inline u64 upper_ns(u32 bucket) noexcept {
    if (bucket == 0) return 1024;
    const u32 octave = (bucket - 1U) / 8U + 10U, part = (bucket - 1U) % 8U;
    return (u64{1} << octave) + (u64{part} + 1U) * (u64{1} << (octave - 3U));
}

inline void add_sample(shm::word* buckets, u64 ns) noexcept {
    buckets[bucket_of(ns)].fetch_add(1, std::memory_order_relaxed);
}

/// The p-quantile (0..1) in milliseconds: the upper end of the bucket that contains it; 0 if there are no
/// samples.
[[nodiscard]] inline f64 percentile_ms(const shm::word* buckets, f64 p) noexcept {
    u64 total = 0;
    for (u32 k = 0; k < shm::latency_buckets; ++k) total += buckets[k].load(std::memory_order_relaxed);
    if (total == 0) return 0;
    u64 seen = 0;
    const f64 wanted = p * static_cast<f64>(total);
    for (u32 k = 0; k < shm::latency_buckets; ++k) {
        seen += buckets[k].load(std::memory_order_relaxed);
        if (static_cast<f64>(seen) >= wanted) return static_cast<f64>(upper_ns(k)) / 1e6;
    }
    return static_cast<f64>(upper_ns(shm::latency_buckets - 1)) / 1e6;
}

inline void raise_to(shm::word& at, u64 value) noexcept {
    u64 now = at.load(std::memory_order_relaxed);
    while (now < value && !at.compare_exchange_weak(now, value, std::memory_order_relaxed)) {
    }
}

/// Counts the latency of a sink's frame since the frame's capture, if the capture time is on this machine's
/// clock; a recorded frame has no latency.
inline void count_from_capture(shm::stage_counters& n, const shm::frame_meta& of, u64 committed_ns) noexcept {
    const u64 captured_ns = of.live_capture_ns();
    if (captured_ns == 0 || captured_ns >= committed_ns) return;
    add_sample(n.from_capture, committed_ns - captured_ns);
    raise_to(n.from_capture_max_ns, committed_ns - captured_ns);
}

}  // namespace carousel::telemetry
