#pragma once
// What a test requests from a stage's process. The process's main() reads it once; code that acts on it
// receives it as an argument.

#include <optional>

#include "core/types.hpp"
#include "shm/block_guard.hpp"

namespace carousel::stages {

struct test_hooks {
    /// CAROUSEL_TEST_TEAR=N: the runner overwrites the status word of sequence N's input between its two
    /// checks
    std::optional<u64> tear_at;
    /// CAROUSEL_TEST_HOLD_LEASE=N: a latest reader stops itself (SIGSTOP) while it holds its first lease of
    /// frame N or later
    std::optional<u64> hold_lease_at;
    /// CAROUSEL_TEST_PEER_RINGS: rings are treated as those of another GPU, on a machine with one device
    bool peer_rings = false;
    /// CAROUSEL_TEST_BLOCK_GUARD=off | pages | emulated, instead of keys. Threads of one process that act as
    /// several stages have no such hooks.
    shm::block_guard block_guard = shm::block_guard::off;
    /// CAROUSEL_TEST_INPUTS_WRITABLE: inputs are mapped for writing, as if the stage had requested it
    bool inputs_writable = false;

    [[nodiscard]] static test_hooks of_environment();
};

}  // namespace carousel::stages
