#pragma once
// Determines from the ledgers of a run's sinks the frame below which all sinks have delivered every frame.
// Used by a stage that acknowledges frames to another host (environment::delivered_below). A sink writes a
// ledger record after its output, so a frame that is marked in every ledger has left the rings
// permanently. ledger/ledger.hpp defines which sinks count for which frames; the supervisor uses the same
// files.
//
// Reads files and words, writes nothing. To be used by one thread at a time.

#include <string>

#include "shm/control_block.hpp"

namespace carousel::stages {

class delivered {
public:
    /// `first`: frames below it were delivered by an earlier run. `checkpoints`: the folder of the run's
    /// checkpoints; "": it has none.
    delivered(const shm::control_block& c, std::string runtime_directory, u64 first,
              std::string checkpoints = "")
        : control_(&c),
          directory_(std::move(runtime_directory)),
          checkpoints_(std::move(checkpoints)),
          below_(first) {}

    /// Returns a sequence number below which every frame is recorded in the ledger of each sink that has a
    /// claim on the frame. Never decreases. As long as a sink that has a claim has not begun, no frame
    /// counts as delivered. As long as no sink has a claim, the returned number does not change. Throws
    /// output_error.
    [[nodiscard]] u64 below();
    /// Returns a number below which the host that sends the frames need not keep them: below(), but in a run
    /// with checkpoints at most the newest of these, because the run continues there if it loses its memory.
    /// All frames of a stream that has ended are delivered without a checkpoint. Throws output_error.
    [[nodiscard]] u64 releasable();

private:
    const shm::control_block* control_;
    std::string directory_, checkpoints_;
    u64 below_;
};

}  // namespace carousel::stages
