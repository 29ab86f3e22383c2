#pragma once
// Chooses how many of its lanes a stage process uses and how far it runs ahead of its readers. Memory and
// limits fix the maximum at the start (pipelines/supervisor/plan/depth_plan.hpp); the choice made here is a
// soft bound below this maximum, stored only in process-local memory. A successor begins with the plan's
// values.
//
// The model: d frames take d * work + overhead, so the share of the time that is work is
// d * work / (d * work + overhead).
//   turns   contexts take turns on one GPU. A turn ends when its process has nothing more queued, and each
//           change of turns costs `switch_ns`. Every context gets one turn for the d frames that pass through
//           all these stages: work is the sum over them, the overhead is one switch per context. All of
//           them read the same figures and therefore choose the same depth.
//   hops    a stage that has the GPU to itself or overlaps with the others (MPS): the overhead is the path
//           from one process to the next, `hop_ns`, which frames in flight hide.
// Balanced is the smallest depth that achieves 95 % of what all lanes would achieve.
//
// Hysteresis: a depth that achieves between 93 and 97 % is kept, and a new depth must be preferred in three
// consecutive updates.

#include <vector>

#include "telemetry/depth.hpp"

namespace carousel::stages {

enum class latency_request : u8 { low, balanced, throughput };
enum class device_sharing : u8 {
    cpu,
    alone,    ///< the only context of the run on its GPU
    turns,    ///< several contexts of the run share the GPU
    overlap,  ///< in an MPS domain
};

/// Depth settings of a stage, from the plan.
struct depth_rule {
    latency_request latency = latency_request::balanced;
    device_sharing sharing = device_sharing::cpu;
    bool lanes_given = true, window_given = true;  ///< set in the pipeline file, and therefore fixed
    bool finish_pool = false;      ///< several threads finish frames, which device measurements do not show
    u32 contexts = 1;              ///< number of contexts that take turns, including this one
    u32 token = shm::none;         ///< turn token of the stage's GPU; none: the stage takes no turns
    u32 turn_frames = 0;           ///< frames per turn, from the pipeline file; 0: chosen during the run
    std::vector<u32> turn_stages;  ///< stages whose work takes turns with that of this stage, including this
                                   ///< stage
};

class depth_governor {
public:
    /// `lanes`, `window`: the available maximum; `window` 0: no output.
    depth_governor(const depth_rule& rule, u32 lanes, u32 window);
    /// Called about four times per second. `work_ns`: time per frame on the device, in all stages that take
    /// turns, or otherwise in this stage, measured since the last call; 0: unknown. Returns true when it has
    /// chosen a depth; the first choice may equal the planned depth.
    bool update(u64 work_ns);
    [[nodiscard]] const telemetry::depth_view& now() const noexcept { return now_; }
    /// Whether update() can change anything.
    [[nodiscard]] bool chooses() const noexcept { return chooses_; }

private:
    [[nodiscard]] u32 smallest_for(f64 share, f64 work_ns) const;
    void take(u32 lanes, telemetry::depth_reason why, u64 work_ns);

    u32 lanes_, window_;
    bool chooses_, window_moves_;
    telemetry::depth_reason when_measured_;
    f64 overhead_ns_;
    u32 wanted_updates_ = 0;  ///< consecutive updates that preferred another depth
    telemetry::depth_view now_;
};

}  // namespace carousel::stages
