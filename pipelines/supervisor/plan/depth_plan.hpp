#pragma once
// How many frames may be under way where the file says "auto" (the default of in_flight and window): the
// capacity, fixed when the run begins by memory and by the control block's limits. How much of it is used,
// each stage chooses while it runs (stages/runner/depth_governor.hpp), and a run that is made anew or taken
// over keeps what was chosen.
//
//                lanes, all instances    window of the ring behind
//   low          2                       lanes of both ends
//   balanced     16 on a GPU             the larger end's lanes and 2
//   throughput   16 on a GPU             lanes of both ends, as far as 64 buffers go
//   on the CPU   2 an instance           lanes of both ends; 8 at least where one end is on a GPU
//
// A number of the file is taken as it is. Then all that is "auto" comes down together, one lane at a time,
// until rings and assets, with what lies beside them (memory_plan.hpp), take no more than half of what is
// free on each device, and of the host's memory: the other half is for the processes, their contexts and
// their scratch.

#include <map>
#include <string>

#include "core/json.hpp"
#include "supervisor/plan/device_choice.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Bytes that rings and assets could take; all ones, or no entry: not known.
struct free_memory {
    u64 host = ~u64{0};
    std::map<std::string, u64> gpu;  ///< by uuid
};
/// Of this machine, now.
[[nodiscard]] free_memory free_memory_of(const machine_offer& machine);

/// Fills lanes, window and depth_reason of a setup whose stages have their devices and sizes. Never refuses.
void choose_depths(run_setup& s, const free_memory& memory);

/// Throws config_error, with the numbers, when rings and assets take more than is free somewhere. Not for a
/// run that is taken over: its memory is taken already.
void require_room(const run_setup& s, const free_memory& memory);

/// Why turns that the file asks for mean nothing in this run; "": they do, or it doesn't ask.
[[nodiscard]] std::string idle_turns(const run_setup& s);

/// What an instance of a stage is told: the "depth" of its attach message (stages/runner/attach.hpp).
[[nodiscard]] nlohmann::json depth_rule_of(const run_setup& s, u32 stage, u32 instance = 0);

/// "in flight 16, 3 ..." of all stages by their names, for a second supervisor; and back again.
[[nodiscard]] nlohmann::json depths_json(const run_setup& s);
void restore_depths(const nlohmann::json& depths, run_setup& s);

}  // namespace carousel::supervisor
