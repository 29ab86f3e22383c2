#pragma once
// A point in one queue for which another queue of the same context can wait without the host. Between
// processes such a wait is not allowed, because a recorder that dies never reaches its point. Within one
// process no thread dies alone, so the baseline may use a wait that is ruled out between isolated processes.

#include <atomic>
#include <memory>

#include "device/backend.hpp"

namespace carousel::bench {

class queue_mark {
public:
    virtual ~queue_mark() = default;
    /// Marks the point after all work enqueued on `on` so far. One thread at a time.
    virtual void record(device::queue& on) = 0;
    /// Makes work that is enqueued on `on` later wait for the last record.
    virtual void hold(device::queue& on) = 0;
    /// Blocks until the work before the last record is done. Throws the exception that this work has thrown.
    virtual void wait() = 0;
};

/// `stop` ends all waits of the CPU's marks; it must outlive them.
[[nodiscard]] std::unique_ptr<queue_mark> make_mark(device::context& context, const std::atomic<bool>& stop);

/// Defined in the CUDA part of the library, if built.
[[nodiscard]] std::unique_ptr<queue_mark> make_cuda_mark();

}  // namespace carousel::bench
