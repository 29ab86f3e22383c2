#pragma once
// Status-word stores and comparisons as one kernel of one thread, because 32-bit stream writes cannot write
// 16 bytes in one store.

#include <cuda_runtime_api.h>

#include <span>

#include "device/backend.hpp"
#include "device/canary.hpp"

namespace carousel::device::cuda {

/// Enqueues the step, or records it (launch.hpp); returns the launch's error.
[[nodiscard]] cudaError_t launch_status(device::queue& q, const status_step& step);

/// The functions of device/canary.hpp on a CUDA queue: one warp for each part of a canary.
void guarded_status(device::queue& q, const status_step& step, std::span<const canary_step> canaries);
[[nodiscard]] cudaError_t launch_guarded(device::queue& q, const status_step& step,
                                         std::span<const canary_step> canaries);
void plant_canaries(device::queue& q, std::span<const canary_step> canaries);
[[nodiscard]] cudaError_t launch_plant(device::queue& q, std::span<const canary_step> canaries);

/// Stores to an unmapped address: the context fails with cudaErrorIllegalAddress.
[[nodiscard]] cudaError_t launch_fault(cudaStream_t stream) noexcept;

}  // namespace carousel::device::cuda
