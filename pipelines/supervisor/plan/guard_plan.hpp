#pragma once
// Determines which stages could write to memory that is not theirs. Rings and assets of other stages are
// mapped read-only, and gaps or canaries follow the slots of rings, unless that is not possible.

#include <string>
#include <vector>

#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

struct unguarded_input {
    std::string stage;
    std::string memory;  ///< "ring vertex", "asset mesh"
    std::string why;
};
/// Lists them in the order of the stages.
[[nodiscard]] std::vector<unguarded_input> unguarded_inputs(const run_setup& s);

struct unguarded_output {
    std::string memory;  ///< "ring vertex"
    std::string why;
};
/// Rings with neither gaps nor canaries after their slots, in the order of the control block.
[[nodiscard]] std::vector<unguarded_output> unguarded_outputs(const run_setup& s);

/// True if all output rings of that stage were made with canaries: their slots are larger than their payload.
[[nodiscard]] bool has_canaries(const shm::control_block& made, u32 stage, const stage_setup& as);

/// Throws config_error with the place in the file if guard = "gap" or "canary" is requested where it is not
/// possible.
void require_guards(const run_setup& s);

/// A text for the plan: "inputs: guarded ..." or "inputs: unguarded: ..."; the same for outputs.
[[nodiscard]] std::string guard_text(const run_setup& s);
[[nodiscard]] std::string output_guard_text(const run_setup& s);
/// "control block: ...": the guard on this host and with this CPU.
[[nodiscard]] std::string block_guard_text(const run_setup& s);

}  // namespace carousel::supervisor
