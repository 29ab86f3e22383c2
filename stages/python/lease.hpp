#pragma once
// How long the memory of a frame's planes is a Python program's, and who still has a pointer into it.
//
// A plane of ours asks its lease before each use, and raises once the frame has ended. An array that was made
// from one (by the buffer protocol, by DLPack) holds a bare pointer and can't raise: it is counted until it
// is let go, so that one which outlives its frame is an error with a name. Used under the GIL alone.

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
    u32 arrays = 0;                      ///< made from its planes and not let go
    bool exported_by_cai = false;        ///< by __cuda_array_interface__: arrays of it aren't counted
    std::string last_plane;              ///< that an array was made from, for the message
    void* stream = nullptr;              ///< the frame's cudaStream_t; null on the CPU, and of a port's frame
                                         ///< that was put down: the port may give it up at any time
    int gpu = -1;                        ///< as this process counts them; -1: the planes lie in host memory
    std::shared_ptr<const void> memory;  ///< what keeps the planes' memory, where not the process does
    std::vector<pybind11::object> kept;  ///< what copies read that are only enqueued
    const owner_process owner;           ///< a child that was forked has nothing enqueued

    void take(const std::string& plane) {
        ++arrays;
        last_plane = plane;
    }
    /// What this process has enqueued, on whatever stream, comes in front of what becomes of the memory. The
    /// GIL is others' where that is waited for.
    void join() noexcept;
    /// Whoever keeps the memory lets go of it. The last who does so joins before, for what is enqueued may
    /// still read it; the GIL is others' meanwhile, as what is let go may be a port, which waits for its
    /// device.
    void release() noexcept;
};

}  // namespace carousel::python
