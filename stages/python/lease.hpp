#pragma once
// Determines how long the memory of a frame's planes belongs to a Python program, and which arrays still
// point into it.
//
// A plane object checks its lease before each use, and raises an exception after the frame has ended. An
// array made from a plane (by the buffer protocol or DLPack) holds a bare pointer and can't raise an
// exception; it is counted until it is released, so that an array that outlives its frame is reported as an
// error with its plane's name. Used only under the GIL.

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::python {

struct lease {
    lease() = default;
    ~lease() { release(); }
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;

    u64 frame_number = 0;
    bool ended = false;
    u32 arrays = 0;  ///< number of arrays that were made from the frame's planes and are not released yet
    bool exported_by_cai = false;  ///< a plane was exported by __cuda_array_interface__; arrays made in this
                                   ///< way aren't counted
    std::string last_plane;        ///< the plane from which an array was last made, for the message
    void* stream = nullptr;  ///< the frame's cudaStream_t; null on the CPU, and for a frame that its port has
                             ///< given back, because the port may destroy the stream at any time
    int gpu = -1;            ///< the planes' GPU, numbered as in this process; -1: host memory
    std::shared_ptr<const void> memory;  ///< owner of the planes' memory, if it is not the process
    std::vector<pybind11::object> kept;  ///< sources of copies that are enqueued and not complete yet
    const owner_process owner;           ///< identifies the process, because a forked child has no enqueued
                                         ///< work

    void take(const std::string& plane) {
        ++arrays;
        last_plane = plane;
    }
    /// Orders all work that this process has enqueued, on any stream, before any later use of the memory.
    /// Releases the GIL while it waits.
    void join() noexcept;
    /// Releases this owner's reference to the memory. The last owner first joins the enqueued work, because
    /// that work may still read the memory. The GIL is released during this function, because the release
    /// may destroy a port, and a port waits for its device.
    void release() noexcept;
};

}  // namespace carousel::python
