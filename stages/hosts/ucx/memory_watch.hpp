#pragma once
// Detects a peer that makes UCX assemble a message of a length that no plan allows.
//
// UCX assembles an eager message of several fragments itself: it allocates the announced length when the
// first fragment arrives, queues fragments that come before the first one, and calls the handler after the
// last fragment. It has no setting for the largest length, and no callback before the last fragment (UCX
// 1.13). But it allocates with malloc(), so the announced length is visible in malloc()'s statistics before
// the bytes have arrived, and closing the endpoint frees the memory. malloc() is shared by the whole process,
// so the allowance includes allocations of the process's other threads while a link exists.

#include <malloc.h>

#include "core/clock.hpp"
#include "core/types.hpp"

namespace carousel::hosts {

class memory_watch {
public:
    explicit memory_watch(u64 allowance) noexcept : allowance_(allowance), base_(allocated_bytes()) {}
    /// Counts the present allocation as the base of the allowance.
    void restart() noexcept { base_ = allocated_bytes(); }
    /// A check is cheap, but not free, so there is at most one per millisecond.
    [[nodiscard]] bool is_due(u64 now_ns) noexcept {
        if (now_ns < next_ns_) return false;
        next_ns_ = now_ns + ns_per_ms;
        return true;
    }
    /// True if the process has allocated more than the allowance since construction or restart().
    [[nodiscard]] bool exceeded() const noexcept { return allocated_bytes() > base_ + allowance_; }
    /// Zero if malloc() has no statistics, e.g. with a sanitizer: in that case nothing is detected.
    [[nodiscard]] static u64 allocated_bytes() noexcept {
        const struct mallinfo2 m = ::mallinfo2();
        return m.uordblks + m.hblkhd;
    }

private:
    u64 allowance_, base_, next_ns_ = 0;
};

}  // namespace carousel::hosts
