#pragma once
// How far all sinks of a run have come, by their ledgers: for a stage that answers for them to somebody
// outside (environment::delivered_below). A ledger's record stands behind what its sink has written, so a
// frame that is marked in each of them is out of the rings for good.
//
// Reads files and words, writes nothing. One thread at a time.

#include <string>
#include <vector>

#include "shm/control_block.hpp"

namespace carousel::stages {

class delivered {
public:
    /// `first`: those below were delivered by a run before this one.
    delivered(const shm::control_block& c, std::string run_directory, u64 first)
        : control_(&c), directory_(std::move(run_directory)), below_(first) {}

    /// Grows. Sinks that read the newest frames only don't count, nor do those that have failed and were left
    /// out; while one that counts has not begun nothing is delivered. Throws output_error.
    [[nodiscard]] u64 below();

private:
    const shm::control_block* control_;
    std::string directory_;
    u64 below_;
};

}  // namespace carousel::stages
