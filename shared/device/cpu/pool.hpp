#pragma once
// A fixed set of threads for parallel loops of one CPU queue. Idle threads sleep. The caller takes part in
// the loop. One loop at a time (the queue's worker is the only caller).

#include <functional>
#include <memory>

#include "core/types.hpp"

namespace carousel::device::cpu {

class pool {
public:
    /// `threads` in all, the calling one included; 0: one a core.
    explicit pool(unsigned threads);
    ~pool();
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    [[nodiscard]] unsigned size() const noexcept;  ///< threads that take part, the caller included

    /// Calls body(begin, end, worker) for disjoint ranges that cover [0, count), each of at most `grain`
    /// items, handed out by an atomic counter. worker < size() is the index of the thread that runs it.
    /// Returns when all are done. The first exception thrown by a body is rethrown here.
    void parallel_for(u64 count, u64 grain,
                      const std::function<void(u64 begin, u64 end, unsigned worker)>& body);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace carousel::device::cpu
