#pragma once
// What a test asks of a stage's process. Its main() reads it, once; whoever obeys it gets it handed in.

#include <optional>

#include "core/types.hpp"
#include "shm/block_guard.hpp"

namespace carousel::stages {

struct test_hooks {
    /// CAROUSEL_TEST_TEAR=N: the runner overwrites the status word of sequence N's input between its two
    /// looks
    std::optional<u64> tear_at;
    /// CAROUSEL_TEST_HOLD_LEASE=N: a latest reader stops itself (SIGSTOP) with its first lease from N on in
    /// hand
    std::optional<u64> hold_lease_at;
    /// CAROUSEL_TEST_PEER_RINGS: rings count as those of another GPU, on a machine with one device
    bool peer_rings = false;
    /// CAROUSEL_TEST_BLOCK_GUARD=off | pages | emulated, in place of keys. Threads of one process that play
    /// several stages have none.
    shm::block_guard block_guard = shm::block_guard::off;
    /// CAROUSEL_TEST_INPUTS_WRITABLE: inputs are mapped for writing, as if the stage had asked for it
    bool inputs_writable = false;

    [[nodiscard]] static test_hooks of_environment();
};

}  // namespace carousel::stages
