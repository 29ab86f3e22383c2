#pragma once
// Kernels that the conformance suite needs: one that waits for the host, one that keeps a diary.

#include <cuda_runtime_api.h>

#include "core/types.hpp"

namespace carousel::test {

/// Runs until *flag (host memory) is not 0, at most limit_ns.
void launch_hold(cudaStream_t stream, const u32* flag, u64 limit_ns);
/// diary[++diary[0]] = value.
void launch_append(cudaStream_t stream, u32* diary, u32 value);

}  // namespace carousel::test
