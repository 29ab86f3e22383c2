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

// A kernel launch as plain data, for code that passes it on without a dependency on CUDA.

struct kernel_launch {
    static constexpr std::size_t most = 16;
    struct argument {
        const void* at = nullptr;
        u32 bytes = 0;
    };
    const char* name = "";         ///< for messages
    const void* kernel = nullptr;  ///< the function's address on the host
    std::array<u32, 3> blocks{1, 1, 1}, threads{1, 1, 1};
    u32 shared_bytes = 0;
    bool overlaps = false;  ///< the kernel may begin before its predecessor has ended, and waits for it
                            ///< itself
    std::array<argument, most> arguments{};
    u32 count = 0;  ///< number of arguments
};

// A frame's work that is the same for every frame: the same kernels in the same order, with the same launch
// sizes; only their arguments differ (slots, parameters). On a GPU this work is captured into a graph once; a
// later frame costs one launch instead of one per kernel.
//   work->begin();   from here to end() kernels are recorded, not launched
//   ...              the launches of one frame, only through launch() of device/cuda/launch.hpp
//   work->end();     the frame's work is enqueued
// Arguments. A kernel reads its arguments from constant memory, as in any other launch: no kernel has to
// change, and a stage that does not run as a graph has no extra cost. Arguments that differ from the last
// frame's are set in the graph's nodes. The alternative is a descriptor that the first node copies to GPU
// memory, where kernels read it: this takes less host time but more GPU time, which is the bottleneck (nine
// launches, all arguments new, on an H100: 18.8 us of host and 14.0 us of GPU time with nodes, 10.3 and 17.6
// with a descriptor; tests/device/cuda/graph_cost.cu). Two other designs were rejected: a graph for each
// combination of slots (a frame's parameters, a camera for example, change as well) and capturing each frame
// again (this costs as much as the launches).
// Check. Every frame's launches are compared with those of the first: kernel, number, sizes. Copies, fills,
// and launches that bypass launch() are detected when the work is captured: at the first frame, the second,
// and every 256th frame. A difference throws error (exit_code::stage_exception) that describes both; the
// runner adds the frame's number.
// Threading: the thread that enqueues on the queue. One object per lane, because its arguments belong to its
// last frame, which must be complete before the next begin(). Crash: nothing here outlives the process.

class same_work {
public:
    virtual ~same_work() = default;
    virtual void begin() = 0;
    virtual void end() = 0;
    /// Called instead of end(): none of the frame's work is enqueued.
    virtual void drop() = 0;
};

/// Returns null if the queue's device has no graphs (a CPU).
[[nodiscard]] std::unique_ptr<same_work> make_same_work(queue& on);

/// A frame's launches, compared with those of the first frame. Needs no device.
class launch_list {
public:
    struct note {
        std::string name;
        kernel_launch launch;          ///< everything except the addresses of its arguments
        std::vector<std::byte> bytes;  ///< the arguments' values
        std::vector<void*> arguments;  ///< into `bytes`
        bool changed = false;          ///< set by add(); the code that plays the launch clears it
    };
    /// Begins a frame.
    void begin();
    /// Adds the frame's next launch. Throws error if it differs from the first frame's.
    void add(const kernel_launch& k);
    /// Throws error if the frame had fewer launches than the first one.
    void end();
    [[nodiscard]] bool first() const noexcept { return frames_ <= 1; }
    [[nodiscard]] u64 frames() const noexcept { return frames_; }
    [[nodiscard]] std::vector<note>& all() noexcept { return notes_; }
    /// Undoes begin(): clears the launches if this is the first frame.
    void forget();

private:
    std::vector<note> notes_;
    std::size_t next_ = 0;
    u64 frames_ = 0;
};

}  // namespace carousel::device
