#pragma once
// A frame's work that is alike for every frame: the same kernels in the same order, with the same sizes of
// launch; only their arguments differ (slots, parameters). On a GPU it is made into a graph once, and a later
// frame costs one launch in place of one a kernel.
//
//   work->begin();   from here to end() kernels are noted, not launched
//   ...              the launches of one frame, by launch() of device/cuda/launch.hpp alone
//   work->end();     the frame's work is in the queue
//
// Arguments. A kernel finds them where the compiler puts them, in constant memory, as in any other launch:
// nothing about a kernel has to change, and a stage that isn't played as a graph pays nothing. Those that
// differ from the last frame's are set in the graph's nodes. The other way is a descriptor that the first
// node brings to GPU memory, where kernels read it: less work for the host and more for the GPU, which is
// what limits (nine launches, all arguments new, on an H100: 18.8 us of host and 14.0 of GPU time by nodes,
// 10.3 and 17.6 by a descriptor; tests/device/cuda/graph_cost.cu). Also thought of: a graph for each
// combination of slots, which parameters of a frame (a camera, say) spoil; capturing each frame anew, which
// costs what launches do.
//
// Alike or not. Every frame's launches are compared with those of the first: kernel, number, sizes. A launch
// that doesn't come by launch(), a copy or a fill is found when the work is captured: at the first frame, the
// second, and every 256th from then on. What differs throws error (exit_code::stage_exception) with both in
// words; the runner adds the frame's number.
//
// Who may call: the thread that enqueues on the queue. One object a lane: its arguments belong to its last
// frame, which must be complete before the next begin(). Crash: nothing here outlives the process.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "device/kernel_launch.hpp"

namespace carousel::device {

class same_work {
public:
    virtual ~same_work() = default;
    virtual void begin() = 0;
    virtual void end() = 0;
    /// In place of end(): nothing of it is enqueued.
    virtual void drop() = 0;
};

/// Null where the queue's device has no graphs (a CPU).
[[nodiscard]] std::unique_ptr<same_work> make_same_work(queue& on);

/// What a frame has launched, beside what the first one has. No device.
class launch_list {
public:
    struct note {
        std::string name;
        kernel_launch launch;          ///< but for its arguments' addresses
        std::vector<std::byte> bytes;  ///< the arguments' values
        std::vector<void*> arguments;  ///< into `bytes`
        bool changed = false;          ///< since whoever plays it has cleared this
    };
    /// A frame begins.
    void begin();
    /// The next launch of it. Throws error when it is another one than the first frame's.
    void add(const kernel_launch& k);
    /// Throws error when there were fewer of them.
    void end();
    [[nodiscard]] bool first() const noexcept { return frames_ <= 1; }
    [[nodiscard]] u64 frames() const noexcept { return frames_; }
    [[nodiscard]] std::vector<note>& all() noexcept { return notes_; }
    /// Only the first frame of a list may be taken back.
    void forget();

private:
    std::vector<note> notes_;
    std::size_t next_ = 0;
    u64 frames_ = 0;
};

}  // namespace carousel::device
