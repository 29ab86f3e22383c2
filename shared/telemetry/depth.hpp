#pragma once
// How many frames a stage's process keeps in flight now, how far ahead of its readers it goes, and why; and
// how it puts a frame's work on its GPU, where it has a choice: one word of its entry, which the process
// alone writes (stages/runner/depth_governor.hpp and reach.hpp choose). A view of it may be as old as it
// likes: no word of the ring and no clock rests on it.

#include <string>

#include "shm/control_block.hpp"

namespace carousel::telemetry {

enum class depth_reason : u8 {
    unknown,     ///< no process has said it
    given,       ///< the file names a number
    requested,   ///< latency = "low" or "throughput": what was planned, whatever is measured
    cores,       ///< on the CPU: more frames in flight make no core faster
    unmeasured,  ///< as planned, until frames have been measured
    turns,       ///< several contexts take turns on the GPU: a turn is to be worth its switch
    hops,        ///< the way from one process to the next is to be hidden behind frames
    finishing,   ///< several threads finish frames: each lane keeps one of them busy
};

/// How rings that lie on another GPU are reached.
enum class reach_state : u8 {
    none,  ///< no such ring
    trying,
    mapping,
    copy,
};
/// "trying", "mapping", "copy"; "" for none.
[[nodiscard]] const char* name_of(reach_state r) noexcept;

struct depth_view {
    u32 lanes = 0;   ///< frames in flight in the process, at most
    u32 window = 0;  ///< frames beyond its output's tail that it begins, at most; 0: it has no output
    depth_reason why = depth_reason::unknown;
    u32 contexts = 0;  ///< that take turns, this one among them
    u32 work_ns = 0;   ///< of a frame: in all contexts that take turns, else in this stage; 0: not measured
    bool graphs = false;  ///< a frame's work is one CUDA graph
    reach_state reach = reach_state::none;

    bool operator==(const depth_view&) const = default;
    /// One word of any content reads as some view: numbers out of range are only odd to look at.
    [[nodiscard]] static depth_view of(u64 word) noexcept;
    [[nodiscard]] u64 pack() const noexcept;
    /// "4 contexts take turns, 0.07 ms a frame"; "" where nothing has been said.
    [[nodiscard]] std::string reason() const;
};

}  // namespace carousel::telemetry
