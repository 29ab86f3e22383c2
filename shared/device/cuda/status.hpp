#pragma once
// One kernel with one thread stores and compares status words. A kernel is used because stream writes have 32
// bits and cannot write 16 bytes in one store.

#include <cuda_runtime_api.h>

#include <span>

#include "device/backend.hpp"
#include "device/canary.hpp"

namespace carousel::device::cuda {

/// Enqueues the step, or records it if a same_work is open (launch.hpp). Returns the launch's error.
[[nodiscard]] cudaError_t launch_status(device::queue& q, const status_step& step);

/// The functions of device/canary.hpp on a CUDA queue, with one warp for each part of a canary.
void guarded_status(device::queue& q, const status_step& step, std::span<const canary_step> canaries);
[[nodiscard]] cudaError_t launch_guarded(device::queue& q, const status_step& step,
                                         std::span<const canary_step> canaries);
void plant_canaries(device::queue& q, std::span<const canary_step> canaries);
[[nodiscard]] cudaError_t launch_plant(device::queue& q, std::span<const canary_step> canaries);

/// Enqueues a kernel that stores to an unmapped address, so that the context fails with
/// cudaErrorIllegalAddress.
[[nodiscard]] cudaError_t launch_fault(cudaStream_t stream) noexcept;

}  // namespace carousel::device::cuda
