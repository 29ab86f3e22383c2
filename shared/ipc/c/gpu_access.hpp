#pragma once
// The GPU memory of a space for <carousel/space.h>. Built from cuda/gpu_access.cpp, or from no_gpu.cpp
// without CUDA.

#include <cstddef>
#include <memory>

#include "core/types.hpp"

namespace carousel::ipc {

class attachment;

class gpu_access {
public:
    gpu_access() = default;
    gpu_access(const gpu_access&) = delete;
    gpu_access& operator=(const gpu_access&) = delete;
    /// Unmaps the memory after this process's work on the GPU.
    virtual ~gpu_access() = default;
    [[nodiscard]] virtual int ordinal() const noexcept = 0;
    /// Waits until all work that this process has enqueued on the GPU is complete. Throws cuda_error.
    virtual void wait_for_work() = 0;
    /// Returns the start of a read-only mapping of the memory, which the first call creates. Throws
    /// device_error.
    [[nodiscard]] virtual const std::byte* read_only() = 0;
};

/// Maps the memory for a GPU, numbered as in this process. Throws config_error if the space has no GPU
/// memory, device_error if the GPU can't access it or if this build has no CUDA.
[[nodiscard]] std::shared_ptr<gpu_access> map_gpu(std::shared_ptr<attachment> to, int ordinal);

}  // namespace carousel::ipc
