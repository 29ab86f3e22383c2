#pragma once
// A queue for kernels. This view is passed to kernels by value, and any of their threads may use the view.

#include <cuda/std/type_traits>

#include "ipc/cuda/gpu_side.cuh"
#include "ipc/gpu_layout.hpp"

namespace carousel::ipc {

/// The longest time for which a kernel waits for another process, even if a longer timeout is requested. This
/// limit is needed because, if the GPU is time-sliced, the other process doesn't run while the kernel waits.
inline constexpr u64 longest_kernel_wait_ns = 100'000'000;

/// An element that the process has leased. A later kernel of the process may commit it.
struct queue_lease {
    u64 ticket = 0;
};

namespace detail {
// The address of each element is a multiple of 8 bytes.
template <class T>
__device__ void copy_in(u8* to, const T& value) {
    memcpy(__builtin_assume_aligned(to, 8), &value, sizeof(T));
}
template <class T>
__device__ void copy_out(T& value, const u8* from) {
    memcpy(&value, __builtin_assume_aligned(from, 8), sizeof(T));
}
[[nodiscard]] __device__ inline u64 gpu_clock_ns() {
    u64 now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
// poll_until() repeats `attempt` until it succeeds or the timeout expires. A call without a timeout does not
// compile; has_a_timeout provides the error message.
template <class T>
inline constexpr bool has_a_timeout = false;
template <class Attempt>
[[nodiscard]] __device__ bool poll_until(u64 timeout_ns, Attempt attempt) {
    if (attempt()) return true;
    const u64 patience = timeout_ns < longest_kernel_wait_ns ? timeout_ns : longest_kernel_wait_ns;
    const u64 begun = gpu_clock_ns();
    for (u32 rest = 64; gpu_clock_ns() - begun < patience; rest = rest < 4096 ? 2 * rest : rest) {
        __nanosleep(rest);
        if (attempt()) return true;
    }
    return false;
}
}  // namespace detail

/// Every function may be called by any thread of any kernel of the process that created the view. The try_...
/// functions never wait; the others wait at most timeout_ns, and at most longest_kernel_wait_ns.
template <class T, class Side = gpu_side>
class queue_view {
    static_assert(::cuda::std::is_trivially_copyable_v<T>,
                  "use a trivially copyable type: elements are copied between processes as bytes");
    static_assert(alignof(T) <= 8,
                  "use an alignment of at most 8 bytes: elements are placed at multiples of 8 bytes");

public:
    queue_view() = default;
    queue_view(const queue_parts<u64>& parts, u32 epoch) : parts_(parts), epoch_(epoch) {}

    /// Returns false if the queue is full.
    [[nodiscard]] __device__ bool try_push(const T& value) const {
        const queue_body<Side> q(parts_, epoch_);
        u64 ticket = 0;
        if (!q.claim(ticket)) return false;
        detail::copy_in(q.element(ticket), value);
        Side::at(step::cell_written);
        (void)q.publish(ticket);
        Side::at(step::cell_published);
        return true;
    }
    /// Pushes elements in order until the queue is full; returns their number.
    [[nodiscard]] __device__ u32 try_push(const T* values, u32 count) const {
        u32 n = 0;
        while (n < count && try_push(values[n])) ++n;
        return n;
    }
    /// Waits for room. Returns false if the queue is still full when the timeout expires.
    [[nodiscard]] __device__ bool push(const T& value, u64 timeout_ns) const {
        return detail::poll_until(timeout_ns, [&] { return try_push(value); });
    }
    template <class U>
    __device__ bool push(const U&) const {
        static_assert(detail::has_a_timeout<U>,
                      "a wait in a kernel needs a timeout, at most longest_kernel_wait_ns (100 ms): use "
                      "push(value, timeout_ns), or try_push(value), which never waits");
        return false;
    }
    /// Returns false if the queue is empty, or if the first element is claimed but not published. Delivers
    /// each element at most once: elements that a process had popped when it died are only counted
    /// (gpu_queue_state::lost).
    [[nodiscard]] __device__ bool try_pop(T& value) const {
        const queue_body<Side> q(parts_, epoch_);
        u64 ticket = 0;
        if (!q.take(cell_state::popping, ticket)) return false;
        detail::copy_out(value, q.element(ticket));
        return q.consume(ticket, cell_state::popping);
    }
    /// Pops up to `count` elements; returns their number.
    [[nodiscard]] __device__ u32 try_pop(T* values, u32 count) const {
        u32 n = 0;
        while (n < count && try_pop(values[n])) ++n;
        return n;
    }
    /// Waits for an element. Returns false if no element arrives in time.
    [[nodiscard]] __device__ bool pop(T& value, u64 timeout_ns) const {
        return detail::poll_until(timeout_ns, [&] { return try_pop(value); });
    }
    template <class U>
    __device__ bool pop(U&) const {
        static_assert(detail::has_a_timeout<U>,
                      "a wait in a kernel needs a timeout, at most longest_kernel_wait_ns (100 ms): use "
                      "pop(value, timeout_ns), or try_pop(value), which never waits");
        return false;
    }
    /// The cell stays reserved until commit() or requeue(); if this process dies before that, the element is
    /// delivered again.
    [[nodiscard]] __device__ bool try_lease(T& value, queue_lease& lease) const {
        const queue_body<Side> q(parts_, epoch_);
        if (!q.take(cell_state::leased, lease.ticket)) return false;
        detail::copy_out(value, q.element(lease.ticket));
        return true;
    }
    /// Waits for an element and leases it. Returns false if no element arrives in time.
    [[nodiscard]] __device__ bool lease(T& value, queue_lease& l, u64 timeout_ns) const {
        return detail::poll_until(timeout_ns, [&] { return try_lease(value, l); });
    }
    template <class U>
    __device__ bool lease(U&, queue_lease&) const {
        static_assert(detail::has_a_timeout<U>,
                      "a wait in a kernel needs a timeout, at most longest_kernel_wait_ns (100 ms): use "
                      "lease(value, l, timeout_ns), or try_lease(value, l), which never waits");
        return false;
    }
    /// Returns false if this process does not hold that lease (any more).
    __device__ bool commit(const queue_lease& l) const {
        return queue_body<Side>(parts_, epoch_).consume(l.ticket, cell_state::leased);
    }
    __device__ bool requeue(const queue_lease& l) const {
        return queue_body<Side>(parts_, epoch_).requeue(l.ticket);
    }
    [[nodiscard]] CAROUSEL_HD u32 capacity() const { return parts_.capacity; }
    [[nodiscard]] const queue_parts<u64>& parts() const { return parts_; }
    [[nodiscard]] u32 epoch() const { return epoch_; }

private:
    queue_parts<u64> parts_;
    u32 epoch_ = 0;
};

}  // namespace carousel::ipc
