#pragma once
// Measures the time of work on a queue. On CUDA it measures between events of the queue's stream, and the
// stream starts only when all work is enqueued. On the CPU it measures by the wall clock from submission
// until the queue is drained, and also measures the CPU time of all threads.

#include <functional>
#include <memory>

#include "device/backend.hpp"

namespace carousel::bench {

class stopwatch {
public:
    virtual ~stopwatch() = default;
    /// Starts a series of laps; the queue must be empty.
    virtual void start() = 0;
    /// Ends a lap. On CUDA it only records an event (at most 7 laps); on the CPU it drains the queue.
    virtual void lap() = 0;
    struct reading {
        f64 ms = 0;      ///< device or wall time
        f64 cpu_ms = 0;  ///< CPU time of all threads; 0 on CUDA
    };
    /// Waits for the last lap and returns the readings of all laps in order.
    [[nodiscard]] virtual std::vector<reading> read() = 0;
};

[[nodiscard]] std::unique_ptr<stopwatch> make_stopwatch(device::queue& queue);
#if defined(CAROUSEL_WITH_CUDA)
[[nodiscard]] std::unique_ptr<stopwatch> make_event_stopwatch(device::queue& queue);  ///< CUDA events
#endif

/// Returns the bandwidth of a copy of `bytes` (all threads on the CPU) in bytes per second, counting both
/// reads and writes: the best of several copies.
[[nodiscard]] f64 copy_bandwidth(device::context& context, device::queue& queue, u64 bytes);

}  // namespace carousel::bench
