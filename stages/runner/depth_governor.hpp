#pragma once
// How many of its lanes a stage's process uses, and how far ahead of its readers it goes. How many there are
// is fixed at the start, by memory and limits (pipelines/supervisor/plan/depth_plan.hpp); what this chooses
// is a soft bound below that, in the memory of the process alone. A successor begins with the plan's.
//
// The model: d frames take d * work + overhead, so the share of the time that is work is
// d * work / (d * work + overhead).
//   turns   contexts take turns on one GPU. A turn ends when its process has nothing more queued, and each
//           change of turns costs `switch_ns`. Everybody gets one turn for the d frames that pass all of
//           them: work is the sum over these stages, the overhead a switch for each. All of them read the
//           same figures, and so come to the same depth.
//   hops    a stage that has the GPU to itself, or overlaps with the others (MPS): the overhead is the way
//           from one process to the next, `hop_ns`, which frames in flight hide.
// Balanced is the smallest depth that brings 95 % of what all lanes would bring.
//
// It doesn't flap: a depth that brings between 93 and 97 % stays, and a new one has to be wanted at three
// looks that follow each other.

#include <vector>

#include "telemetry/depth.hpp"

namespace carousel::stages {

enum class latency_request : u8 { low, balanced, throughput };
enum class device_sharing : u8 {
    cpu,
    alone,    ///< the only context of the run on its GPU
    turns,    ///< several contexts of the run on it
    overlap,  ///< in an MPS domain
};

/// What the plan says of a stage's depth.
struct depth_rule {
    latency_request latency = latency_request::balanced;
    device_sharing sharing = device_sharing::cpu;
    bool lanes_given = true, window_given = true;  ///< by the file: not to be moved
    bool finish_pool = false;      ///< several threads finish frames, which no look at the device sees
    u32 contexts = 1;              ///< that take turns, this one among them
    u32 token = shm::none;         ///< of the turns on its GPU; none: it takes no turns
    u32 turn_frames = 0;           ///< of a turn, as the file says; 0: chosen by the run
    std::vector<u32> turn_stages;  ///< stages whose work takes turns with this one's, itself among them
};

class depth_governor {
public:
    /// `lanes`, `window`: what there is; a window of 0: no output.
    depth_governor(const depth_rule& rule, u32 lanes, u32 window);
    /// One look, about four times a second. `work_ns`: what a frame takes on the device, in all stages that
    /// take turns or else in this one, measured since the last look; 0: not known. True: the depth is another
    /// one now.
    bool update(u64 work_ns);
    [[nodiscard]] const telemetry::depth_view& now() const noexcept { return now_; }
    /// Whether looks can change anything.
    [[nodiscard]] bool chooses() const noexcept { return chooses_; }

private:
    [[nodiscard]] u32 smallest_for(f64 share, f64 work_ns) const;
    void take(u32 lanes, telemetry::depth_reason why, u64 work_ns);

    u32 lanes_, window_;
    bool chooses_, window_moves_;
    telemetry::depth_reason when_measured_;
    f64 overhead_ns_;
    u32 wanted_updates_ = 0;  ///< in a row at which another depth was wanted
    telemetry::depth_view now_;
};

}  // namespace carousel::stages
