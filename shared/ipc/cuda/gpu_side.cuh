#pragma once
// The kernels' side of a body (queue_body.hpp): words in GPU memory, changed only by kernels.
//
// Operations use system scope, because other processes, and kernels on another GPU that maps the memory, are
// not part of any smaller scope. Several threads of one process, and of one warp, may use a primitive at
// once: each claim is one CAS, and no thread waits for another.

#include <cuda/atomic>

#include "ipc/owner_word.hpp"
#include "ipc/steps.hpp"

namespace carousel::ipc {

struct gpu_side {
    using word = u64;
    [[nodiscard]] __device__ static u64 load(const u64& w) {
        const ::cuda::atomic_ref<u64, ::cuda::thread_scope_system> at_word(const_cast<u64&>(w));
        return at_word.load(::cuda::memory_order_acquire);
    }
    __device__ static bool cas(u64& w, u64 expected, u64 desired) {
        const ::cuda::atomic_ref<u64, ::cuda::thread_scope_system> at_word(w);
        return at_word.compare_exchange_strong(expected, desired, ::cuda::memory_order_acq_rel,
                                               ::cuda::memory_order_acquire);
    }
    __device__ static void at(step) {}
};

}  // namespace carousel::ipc
