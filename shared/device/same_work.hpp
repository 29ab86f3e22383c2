#pragma once
// The kernel launches of a frame, and work that is the same for every frame.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::device {

// A kernel launch as plain data, so that code can pass it on without depending on CUDA.

struct kernel_launch {
    static constexpr std::size_t most = 16;
    struct argument {
        const void* at = nullptr;
        u32 bytes = 0;
    };
    const char* name = "";         ///< for error messages
    const void* kernel = nullptr;  ///< the function's address on the host
    std::array<u32, 3> blocks{1, 1, 1}, threads{1, 1, 1};
    u32 shared_bytes = 0;
    /// true if the kernel may begin before its predecessor has ended; in this case the kernel itself waits
    /// for the predecessor
    bool overlaps = false;
    std::array<argument, most> arguments{};
    u32 count = 0;  ///< number of arguments
};

// Work that is the same for every frame: the same kernels run in the same order with the same launch sizes,
// and only their arguments differ (slots, parameters). On a GPU this work is captured into a graph once, so
// that a later frame costs one launch instead of one launch per kernel.
//   work->begin();   from here to end() kernels are recorded, not launched
//   ...              the launches of one frame, only through launch() of device/cuda/launch.hpp
//   work->end();     the frame's work is enqueued
// Arguments. A kernel reads its arguments from constant memory, as in any other launch: no kernel has to
// change, and a stage that does not run as a graph has no extra cost. Arguments that differ from those of the
// previous frame are set in the graph's nodes. Three other designs were rejected. A descriptor that the first
// node copies to GPU memory, where kernels read it, takes less host time but more GPU time, and GPU time is
// the bottleneck (for nine launches with all arguments new, on an H100: 18.8 us of host time and 14.0 us of
// GPU time with nodes, 10.3 us and 17.6 us with a descriptor; tests/device/cuda/graph_cost.cu). One graph for
// each combination of slots does not suffice, because a frame's parameters, for example the camera, change as
// well. Capturing each frame again costs as much as launching its kernels. Check. The launches of every frame
// are compared with those of the first frame: their number, their kernels and their sizes must be equal.
// Copies, fills, and launches that bypass launch() are detected when the work is captured: at the first
// frame, the second, and every 256th frame. If there is a difference, an error (exit_code::stage_exception)
// that describes both frames is thrown; the runner adds the frame's number to it. Threading: to be used by
// the thread that enqueues on the queue. There is one object per lane: the object's arguments belong to the
// last frame recorded with it, and that frame must be complete before begin() is called again. Crash: no
// state of this object outlives the process.

class same_work {
public:
    virtual ~same_work() = default;
    virtual void begin() = 0;
    virtual void end() = 0;
    /// Called instead of end(), to enqueue none of the frame's work.
    virtual void drop() = 0;
};

/// Returns null if the queue's device has no graphs (a CPU).
[[nodiscard]] std::unique_ptr<same_work> make_same_work(queue& on);

/// A frame's launches, compared with those of the first frame. Needs no device.
class launch_list {
public:
    struct note {
        std::string name;
        kernel_launch launch;          ///< the launch, except the addresses of its arguments
        std::vector<std::byte> bytes;  ///< the arguments' values
        std::vector<void*> arguments;  ///< addresses of the values in `bytes`
        /// an argument has changed; the code that runs the launch clears this flag
        bool changed = false;
    };
    /// Begins a frame.
    void begin();
    /// Adds the frame's next launch. Throws error if this launch differs from the corresponding launch of the
    /// first frame.
    void add(const kernel_launch& k);
    /// Throws error if the frame had fewer launches than the first one.
    void end();
    [[nodiscard]] bool first() const noexcept { return frames_ <= 1; }
    [[nodiscard]] u64 frames() const noexcept { return frames_; }
    [[nodiscard]] std::vector<note>& all() noexcept { return notes_; }
    /// Undoes begin(): if this is the first frame, also removes its launches.
    void forget();

private:
    std::vector<note> notes_;
    std::size_t next_ = 0;
    u64 frames_ = 0;
};

}  // namespace carousel::device
