#pragma once
// What the supervisor keeps of a control block beside it, for the day on which the block can't be believed:
// the stages' counters. A word that has jumped further than time allows, or back, is not taken over. One
// thread.

#include <memory>
#include <vector>

#include "shm/control_block.hpp"

namespace carousel::supervisor {

class counter_backup {
public:
    /// Looks at the counters; call it about once a second.
    void sample(const shm::control_block& c, u32 stages);
    /// The block is well: what was torn until now is. What is torn between this and a block that is made anew
    /// is delivered once more.
    void accept(const shm::control_block& c, u32 stages) noexcept;
    /// Writes what is known into a fresh block that nobody has seen yet.
    void restore(shm::control_block& fresh, const shm::control_block& old, u32 stages, bool untrusted);

private:
    std::unique_ptr<shm::stage_counters[]> kept_;
    u64 torn_[shm::max_stages] = {};
};

}  // namespace carousel::supervisor
