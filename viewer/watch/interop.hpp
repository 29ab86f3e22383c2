#pragma once
// The viewer's interface to CUDA-GL interop: a frame goes from ring memory into a GL texture without leaving
// the GPU. It needs the current GL context to be on the same GPU; otherwise the frame is copied through
// page-locked host memory. To be called only in the window's thread, with its GL context current.

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
    /// Moves the pixel buffer into the texture. The GPU orders this after the copy; the caller does not wait.
    /// Throws cuda_error.
    virtual void show(unsigned texture, u32 width, u32 height) = 0;
};

/// Makes an interop, or returns null and sets `why_not`. The tap gets this function so that it does not
/// depend on GL itself; a null function means that there is no GL.
using interop_maker = std::unique_ptr<interop> (*)(const device::device_id& device, u64 bytes,
                                                   std::string& why_not);

}  // namespace carousel::viewer
