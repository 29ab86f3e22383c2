#pragma once
// Makes the interop of this build: window/cuda with CUDA, none without. It needs GL, so it is used only by a
// window.

#include "viewer/watch/tap.hpp"

namespace carousel::viewer {

/// Returns null if interop is not available, with the reason in `why_not` ("GL runs on llvmpipe, not on the
/// GPU of the ring").
[[nodiscard]] std::unique_ptr<interop> make_interop(const device::device_id& device, u64 bytes,
                                                    std::string& why_not);

}  // namespace carousel::viewer
