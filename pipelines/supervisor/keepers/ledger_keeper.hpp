#pragma once
// The supervisor's part in the sinks' ledgers: it makes the marks that the dead could not make, and folds
// what is delivered and old. Which sinks are counted at all is said here, too. One thread; files of the run's
// folder alone.

#include <string>

#include "shm/control_block.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Why nothing of a stage is counted, or "": it has an output; it reads the newest frames only; it was left
/// out.
[[nodiscard]] std::string not_counted(const run_setup& s, const shm::control_block& c, u32 stage);

class ledger_keeper {
public:
    explicit ledger_keeper(const run_setup& s) : setup_(&s) {}
    /// The dead `epoch` of a seat of `stage` has committed the frame: its job word says so. Never throws;
    /// returns what the user is to be told, or "".
    std::string found_committed(u32 stage, u32 seat, u32 epoch, u64 sequence) noexcept;
    /// Once a second: folds what every counted sink has committed, but for the newest
    /// run_setup::kept_records. Returns what the user is to be told, or "".
    std::string tick(u64 now, const shm::control_block& c);

private:
    const run_setup* setup_;
    u64 looked_ns_ = 0;
    bool failed_ = false;
};

}  // namespace carousel::supervisor
