#pragma once
// CUDA-GL interop as the viewer sees it: a frame goes from ring memory into a GL texture without leaving the
// GPU. Only where the current GL context lives on the same GPU; everywhere else the frame is copied through
// page-locked host memory. The window's thread only, with its GL context current.

#include <memory>
#include <string>

#include "device/backend.hpp"

namespace carousel::viewer {

class interop {
public:
    virtual ~interop() = default;
    /// Enqueues the copy of a picture (RGBA8, dense, memory of this GPU) into the pixel buffer. Throws
    /// cuda_error.
    virtual void copy(device::queue& q, const std::byte* from) = 0;
    /// Moves the pixel buffer into the texture, behind the copy on the GPU: nothing waits here. Throws
    /// cuda_error.
    virtual void show(unsigned texture, u32 width, u32 height) = 0;
};

/// A way to an interop, or null where there is no GL: what the tap is given, so that it needs no GL itself.
using interop_maker = std::unique_ptr<interop> (*)(const device::device_id& device, u64 bytes,
                                                   std::string& why_not);

}  // namespace carousel::viewer
