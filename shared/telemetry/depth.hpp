#pragma once
// The number of frames that a stage's process keeps in flight, the number of frames by which the process is
// ahead of its readers, and the reason for these numbers. If there is a choice, also the way in which the
// process submits a frame's work to its GPU. All these values are in one word of the process's entry; only
// the process writes this word (stages/runner/depth_governor.hpp chooses the values). A copy of the word may
// be arbitrarily old: no protocol word and no timeout depends on it.

#include <string>

#include "shm/control_block.hpp"

namespace carousel::telemetry {

enum class depth_reason : u8 {
    unknown,     ///< no process has set it
    given,       ///< the pipeline file has a number
    requested,   ///< latency = "low" or "throughput": as planned, regardless of measurements
    cores,       ///< on the CPU: more frames in flight would not make a core faster
    unmeasured,  ///< as planned, until frames have been measured
    turns,       ///< several contexts take turns on the GPU, so a turn must be long enough to be worth its
                 ///< context switch
    hops,        ///< frames in flight hide the latency between processes
    finishing,   ///< several threads finish frames: each lane keeps one of them busy
};

/// How rings on another GPU are accessed.
enum class reach_state : u8 {
    none,  ///< no such ring
    trying,
    mapping,
    copy,
};
/// Returns "trying", "mapping", "copy"; "" for none.
[[nodiscard]] const char* name_of(reach_state r) noexcept;

struct depth_view {
    u32 lanes = 0;   ///< maximum number of frames in flight in the process
    u32 window = 0;  ///< maximum number of frames begun beyond the tail of its output; 0: no output
    depth_reason why = depth_reason::unknown;
    u32 contexts = 0;  ///< number of contexts that take turns, including this one
    u32 work_ns = 0;   ///< time per frame: the sum over all contexts if several contexts take turns, and this
                       ///< stage's own time if they don't; 0: not measured
    bool graphs = false;  ///< a frame's work is one CUDA graph
    reach_state reach = reach_state::none;

    bool operator==(const depth_view&) const = default;
    /// Any word decodes to a valid view; out-of-range numbers only affect the display.
    [[nodiscard]] static depth_view of(u64 word) noexcept;
    [[nodiscard]] u64 pack() const noexcept;
    /// "4 contexts take turns on the GPU, 0.070 ms per frame over all of them"; "" if the reason is unknown.
    [[nodiscard]] std::string reason() const;
};

}  // namespace carousel::telemetry
