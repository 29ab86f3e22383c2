#pragma once
// The supervisor's backup of the stages' counters, used when the control block turns out to be damaged. A
// counter that has decreased, or grown by more than is possible in the elapsed time, is not restored. One
// thread.

#include <memory>
#include <vector>

#include "shm/control_block.hpp"

namespace carousel::supervisor {

class counter_backup {
public:
    /// Reads the counters. To be called about once per second.
    void sample(const shm::control_block& c, u32 stages);
    /// The block was checked and is sound: the counts of torn frames up to now are valid. Frames that are
    /// torn between this call and a rebuild are delivered again, so their counts are dropped.
    void accept(const shm::control_block& c, u32 stages) noexcept;
    /// Writes the saved counters into a new block that is not published yet.
    void restore(shm::control_block& fresh, const shm::control_block& old, u32 stages, bool untrusted);

private:
    std::unique_ptr<shm::stage_counters[]> kept_;
    u64 torn_[shm::max_stages] = {};
};

}  // namespace carousel::supervisor
