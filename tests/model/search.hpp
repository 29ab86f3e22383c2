#pragma once
// Breadth-first search over all states; then, backwards from the goals, the states from which a goal can be
// reached.

#include <string>
#include <vector>

#include "moves.hpp"

namespace carousel::model {

struct result {
    failure found = failure::holds;
    u64 states = 0, steps = 0, bytes = 0;  ///< bytes: approximate peak memory of the search
    double seconds = 0;
    std::string why;                 ///< what was violated, or the state that can't continue
    std::vector<std::string> trace;  ///< shortest path to that state
};

/// Explores everything that `s` allows and checks safety in each state; then liveness: from every state, with
/// live processes and the supervisor alone (no further fault, no zombie, no helper), (1) all is delivered and
/// nothing is left over: else STUCK; (2) all is delivered although no viewer ever moves: else VIEWER-BLOCKS;
/// (3) on request, although no kill ever completes: else WAITS-FOR-FENCE. Stops at the first failure, or with
/// TOO-BIG beyond `max_states`.
result explore(const setup& s, u64 max_states = 40'000'000);

}  // namespace carousel::model
