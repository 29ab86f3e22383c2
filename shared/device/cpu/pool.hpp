#pragma once
// A fixed set of threads for the parallel loops of a context's CPU queues. Idle threads sleep. The caller
// takes part in the loop. One loop at a time; the loops of several queues take turns.

#include <functional>
#include <memory>

#include "core/types.hpp"

namespace carousel::device::cpu {

class pool {
public:
    /// `threads`: total number, including the calling thread; 0: one per core.
    explicit pool(unsigned threads);
    ~pool();
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    [[nodiscard]] unsigned size() const noexcept;  ///< threads that take part, including the caller

    /// Calls body(begin, end, worker) for disjoint ranges that cover [0, count), each of at most `grain`
    /// items, assigned by an atomic counter. worker < size() is the index of the thread that runs the range.
    /// Returns after all ranges are complete. Rethrows the first exception that a body throws.
    void parallel_for(u64 count, u64 grain,
                      const std::function<void(u64 begin, u64 end, unsigned worker)>& body);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace carousel::device::cpu
