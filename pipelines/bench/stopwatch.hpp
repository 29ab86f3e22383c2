#pragma once
// Times work on a queue. On CUDA between events of its stream, which begins when all of it is enqueued; on
// the CPU by the wall clock from the submission until the queue is drained, with the CPU time of all threads
// beside it.

#include <functional>
#include <memory>

#include "device/backend.hpp"

namespace carousel::bench {

class stopwatch {
public:
    virtual ~stopwatch() = default;
    /// Begins a lap series; nothing else may be queued.
    virtual void start() = 0;
    /// Ends a lap here. On CUDA it only records an event (at most 7 laps); on the CPU it drains.
    virtual void lap() = 0;
    struct reading {
        f64 ms = 0;      ///< device or wall time
        f64 cpu_ms = 0;  ///< CPU time of all threads; 0 on CUDA
    };
    /// Waits for the last lap and returns all of them, in order.
    [[nodiscard]] virtual std::vector<reading> read() = 0;
};

[[nodiscard]] std::unique_ptr<stopwatch> make_stopwatch(device::queue& queue);
#if defined(CAROUSEL_WITH_CUDA)
[[nodiscard]] std::unique_ptr<stopwatch> make_event_stopwatch(device::queue& queue);  ///< of make_stopwatch()
#endif

/// Bytes a second, read and written ones both counted, of a copy of `bytes` (all threads on the CPU): the
/// best of several.
[[nodiscard]] f64 copy_bandwidth(device::context& context, device::queue& queue, u64 bytes);

}  // namespace carousel::bench
