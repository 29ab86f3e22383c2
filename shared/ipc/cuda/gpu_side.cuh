#pragma once
// The class Side of a body (queue_body.hpp), for kernels: the words are in GPU memory, and only kernels
// change them.
//
// Operations use system scope, because a smaller scope does not include other processes, nor kernels on
// another GPU that maps the memory. Several threads of one process, and even of one warp, may use a primitive
// at the same time, because each claim is one CAS and no thread waits for another one.

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
