#pragma once
// Handles a run in which no frame advances. If a stage has a reason to wait, the reason is logged; otherwise
// the block is rebuilt, because a word may be wrong although no check finds it.

#include <optional>
#include <string>

#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/stall_watch.hpp"

namespace carousel::supervisor {

class stall_guard {
public:
    stall_guard(const run_setup& setup, std::string run_id, process_table& seats, block_custodian& block,
                run_facts& facts)
        : setup_(&setup), run_id_(std::move(run_id)), seats_(&seats), block_(&block), facts_(&facts) {}

    /// Called in each tick in which frames may advance.
    [[nodiscard]] std::optional<block_damage> watch(u64 now);
    /// To be called if there is nothing to watch: the time without progress starts again.
    void restart(u64 now) noexcept { stall_.restart(now); }

private:
    [[nodiscard]] std::string undeliverable() const;

    const run_setup* setup_;
    std::string run_id_;
    process_table* seats_;
    block_custodian* block_;
    run_facts* facts_;
    stall_watch stall_;
    std::string reason_;  ///< the last logged reason for a stall
};

}  // namespace carousel::supervisor
