#pragma once
// Which stages could write to what isn't theirs. Rings and assets of others are mapped for reading, and gaps
// or canaries lie behind the slots of rings, except where that can't be had.

#include <string>
#include <vector>

#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

struct unguarded_input {
    std::string stage;
    std::string memory;  ///< "ring vertex", "asset mesh"
    std::string why;
};
/// In the order of the stages.
[[nodiscard]] std::vector<unguarded_input> unguarded_inputs(const run_setup& s);

struct unguarded_output {
    std::string memory;  ///< "ring vertex"
    std::string why;
};
/// Rings with neither gaps nor canaries behind their slots, in the order of the control block.
[[nodiscard]] std::vector<unguarded_output> unguarded_outputs(const run_setup& s);

/// Whether all rings behind that stage were made with canaries: their slots are larger than their payload.
[[nodiscard]] bool has_canaries(const shm::control_block& made, u32 stage, const stage_setup& as);

/// Throws config_error with the place in the file: guard = "gap" or "canary" is asked for where it can't be
/// had.
void require_guards(const run_setup& s);

/// For the plan: "inputs: guarded ..." or "inputs: unguarded: ..."; the same of outputs.
[[nodiscard]] std::string guard_text(const run_setup& s);
[[nodiscard]] std::string output_guard_text(const run_setup& s);
/// "control block: ...": on this host and with this CPU.
[[nodiscard]] std::string block_guard_text(const run_setup& s);

}  // namespace carousel::supervisor
