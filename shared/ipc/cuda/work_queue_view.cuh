#pragma once
// A work queue for kernels. This view is passed to kernels by value, and any of their threads may use the
// view.

#include <cuda/std/type_traits>

#include "ipc/cuda/queue_view.cuh"
#include "ipc/gpu_layout.hpp"

namespace carousel::ipc {

/// Every function may be called by any thread of any kernel of the process that created the view. Only
/// claim() waits: at most timeout_ns, and at most longest_kernel_wait_ns.
template <class T, class Side = gpu_side>
class work_queue_view {
    static_assert(::cuda::std::is_trivially_copyable_v<T>,
                  "use a trivially copyable type: tasks are copied between processes as bytes");
    static_assert(alignof(T) <= 8,
                  "use an alignment of at most 8 bytes: tasks are placed at multiples of 8 bytes");

public:
    work_queue_view() = default;
    work_queue_view(const task_parts<u64>& parts, u32 epoch) : parts_(parts), epoch_(epoch) {}

    /// Returns false if no place is free.
    [[nodiscard]] __device__ bool try_submit(const T& task) const {
        task_name n;
        return try_submit(task, n);
    }
    /// `name`: identifies the task permanently.
    [[nodiscard]] __device__ bool try_submit(const T& task, task_name& name) const {
        const task_body<Side> w(parts_, epoch_);
        if (!w.fill(name)) return false;
        detail::copy_in(w.task(name.place), task);
        Side::at(step::task_written);
        return w.submit(name);
    }
    /// Returns false if no task is waiting. The claim belongs to this process until any of its kernels calls
    /// commit() or fail(); if the process dies before that, the task waits again with one more attempt
    /// counted.
    [[nodiscard]] __device__ bool try_claim(T& task, claimed_task& claim) const {
        const task_body<Side> w(parts_, epoch_);
        if (!w.claim(claim)) return false;
        detail::copy_out(task, w.task(claim.name.place));
        return true;
    }
    /// Waits for a task and claims it. Returns false if no task arrives in time.
    [[nodiscard]] __device__ bool claim(T& task, claimed_task& c, u64 timeout_ns) const {
        return detail::poll_until(timeout_ns, [&] { return try_claim(task, c); });
    }
    template <class U>
    __device__ bool claim(U&, claimed_task&) const {
        static_assert(detail::has_a_timeout<U>,
                      "a wait in a kernel needs a timeout, at most longest_kernel_wait_ns (100 ms): use "
                      "claim(task, c, timeout_ns), or try_claim(task, c), which never waits");
        return false;
    }
    /// Returns false if this process does not hold that claim (any more).
    __device__ bool commit(const claimed_task& c) const { return task_body<Side>(parts_, epoch_).commit(c); }
    /// The task waits again, or becomes a dead letter.
    __device__ bool fail(const claimed_task& c) const { return task_body<Side>(parts_, epoch_).fail(c); }
    /// Removes a dead letter and returns it. If the process dies in between, the dead letter stays in the
    /// queue.
    [[nodiscard]] __device__ bool take_dead_letter(T& task) const {
        const task_body<Side> w(parts_, epoch_);
        claimed_task t;
        if (!w.read_dead_letter(t)) return false;
        detail::copy_out(task, w.task(t.name.place));
        Side::at(step::dead_letter_read);
        w.remove_dead_letter(t);
        return true;
    }
    [[nodiscard]] CAROUSEL_HD u32 capacity() const { return parts_.capacity; }
    [[nodiscard]] const task_parts<u64>& parts() const { return parts_; }
    [[nodiscard]] u32 epoch() const { return epoch_; }

private:
    task_parts<u64> parts_;
    u32 epoch_ = 0;
};

}  // namespace carousel::ipc
