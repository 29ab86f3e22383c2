#pragma once
// Determines how many frames may be in flight if in_flight or window is "auto", which is the default of both
// keys. This is the capacity, fixed at the start of the run by memory and by the control block's limits. Each
// stage chooses at run time how much of it to use (stages/runner/depth_governor.hpp). A run that is rebuilt
// or taken over keeps the chosen capacity.
//
//                lanes, all instances    window of the output ring
//   low          2                       lanes of both ends
//   balanced     16 on a GPU             the larger end's lanes and 2
//   throughput   16 on a GPU             lanes of both ends, up to 64 buffers
//   on the CPU   2 per instance          lanes of both ends; at least 8 if a stage of the run is on a GPU
//
// A number in the file is used unchanged. The values for "auto" are then lowered together, one lane at a
// time, until rings and assets, with the extra memory of memory_plan.hpp, take no more than half of the free
// memory on each device and on the host. The other half is for the processes, their contexts and their
// scratch memory.

#include <map>
#include <string>

#include "core/json.hpp"
#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Bytes available for rings and assets; a value that is all ones, or that has no entry, is unknown.
struct free_memory {
    u64 host = ~u64{0};
    std::string host_bound = {};     ///< "FILE allows 1.0 GiB", if a control group's limit is the bound
    std::map<std::string, u64> gpu;  ///< by uuid
};
/// Returns the free memory of this machine at the time of the call.
[[nodiscard]] free_memory free_memory_of(const machine_offer& machine);

/// Sets lanes, window and depth_reason of a setup in which the devices and sizes of the stages are already
/// set. Never refuses a setup.
void choose_depths(run_setup& s, const free_memory& memory);

/// Throws config_error, with the numbers, if rings and assets need more than the free memory of a device or
/// the host. Must not be called for a run that is taken over, because its memory is already allocated.
void require_room(const run_setup& s, const free_memory& memory);

/// Returns the reason why the `turns` that the file requests have no effect in this run; "": they have an
/// effect, or are not requested.
[[nodiscard]] std::string idle_turns(const run_setup& s);

/// Returns the rule by which an instance of a stage chooses its depth: the member "depth" of its attach
/// message (stages/runner/attach.hpp).
[[nodiscard]] nlohmann::json depth_rule_of(const run_setup& s, u32 stage, u32 instance = 0);

/// These functions save the chosen depths and standbys of all stages, by stage name, for a second supervisor,
/// and restore them.
[[nodiscard]] nlohmann::json depths_json(const run_setup& s);
void restore_depths(const nlohmann::json& depths, run_setup& s);

}  // namespace carousel::supervisor
