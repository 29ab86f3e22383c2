#pragma once
// A point in one queue for which another queue of the same context can wait, without the host in between.
// Between processes nothing may wait like this: a recorder that dies never reaches its point. Inside one
// process nobody dies alone, so that the baseline may use what isolation can't.

#include <atomic>
#include <memory>

#include "device/backend.hpp"

namespace carousel::bench {

class queue_mark {
public:
    virtual ~queue_mark() = default;
    /// Behind all work of `on` so far. One thread at a time.
    virtual void record(device::queue& on) = 0;
    /// What is enqueued on `on` later begins behind the last record.
    virtual void hold(device::queue& on) = 0;
    /// Blocks until the work before the last record is done. Throws what the work has thrown.
    virtual void wait() = 0;
};

/// `stop` ends all waits of the CPU's marks; it outlives them.
[[nodiscard]] std::unique_ptr<queue_mark> make_mark(device::context& context, const std::atomic<bool>& stop);

/// In the CUDA part of the library, where there is one.
[[nodiscard]] std::unique_ptr<queue_mark> make_cuda_mark();

}  // namespace carousel::bench
