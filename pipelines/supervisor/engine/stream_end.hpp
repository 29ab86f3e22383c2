#pragma once
// Handles a source that ends its stream (ring/stream_end.hpp). END has one writer, this process: it lowers
// END to the claimed frame, regardless of earlier requests. The decision is saved first, because a supervisor
// that takes the run over checks END against the saved value.

#include <functional>
#include <string>

#include "supervisor/engine/block_custodian.hpp"

namespace carousel::supervisor {

class stream_end {
public:
    /// `save`: saves the run's facts and END for a successor.
    stream_end(const run_setup& setup, process_table& seats, block_custodian& block, run_facts& facts,
               std::function<void()> save)
        : setup_(&setup), seats_(&seats), block_(&block), facts_(&facts), save_(std::move(save)) {}

    /// Called in each tick, before a stop determines its own END. unknown and STOPPING are above every
    /// number.
    void watch();
    /// For a stream that another host sends: this call replaces the claim of a source (E2 of
    /// ring/PROTOCOL.md). The sender to this stage has sent all its frames, so the stage has not leased a
    /// number for a frame that does not exist. A block that is being rebuilt starts with this END.
    void end(const std::string& stage, u64 at, const std::string& why);
    /// To be called after a takeover: the dead supervisor may have saved the END without lowering it in the
    /// block.
    void adopt(u32 ended_by);

private:
    void lower(u32 stage, u64 at);

    const run_setup* setup_;
    process_table* seats_;
    block_custodian* block_;
    run_facts* facts_;
    std::function<void()> save_;
};

}  // namespace carousel::supervisor
