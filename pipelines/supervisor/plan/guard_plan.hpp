#pragma once
// Which stages could write to what they only read: rings and assets of others are mapped for reading, except
// where that can't be had.

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

/// For the plan: "inputs: guarded ..." or "inputs: unguarded: ...".
[[nodiscard]] std::string guard_text(const run_setup& s);

}  // namespace carousel::supervisor
