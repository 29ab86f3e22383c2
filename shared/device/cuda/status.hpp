#pragma once
// Status words' store and comparisons as one kernel of one thread: 32-bit stream writes can't carry 16 bytes
// in one piece.

#include <cuda_runtime_api.h>

#include <span>

#include "device/backend.hpp"
#include "device/guarded_status.hpp"

namespace carousel::device::cuda {

/// Enqueues, or notes it (launch.hpp); returns the launch's error.
[[nodiscard]] cudaError_t launch_status(device::queue& q, const status_step& step);

/// Those of device/guarded_status.hpp on a CUDA queue: a warp for each part of a canary.
void guarded_status(device::queue& q, const status_step& step, std::span<const canary_step> canaries);
[[nodiscard]] cudaError_t launch_guarded(device::queue& q, const status_step& step,
                                         std::span<const canary_step> canaries);
void plant_canaries(device::queue& q, std::span<const canary_step> canaries);
[[nodiscard]] cudaError_t launch_plant(device::queue& q, std::span<const canary_step> canaries);

/// A store to an address that no allocation has: the context is lost with cudaErrorIllegalAddress.
[[nodiscard]] cudaError_t launch_fault(cudaStream_t stream) noexcept;

}  // namespace carousel::device::cuda
