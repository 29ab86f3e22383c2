#pragma once
// The interop of this build: viewer/cuda with CUDA, none without. Needs GL, so only a window makes one.

#include "viewer/watch/interop.hpp"

namespace carousel::viewer {

/// Null when it can't be had: `why_not` says why ("GL runs on llvmpipe, not on the GPU of the ring").
[[nodiscard]] std::unique_ptr<interop> make_interop(const device::device_id& device, u64 bytes,
                                                    std::string& why_not);

}  // namespace carousel::viewer
