#pragma once
// A source that ends its stream (ring/stream_end.hpp). END has one writer, this process: it lowers END to the
// claim, whatever was requested before. It saves that decision first: a supervisor that takes the run over
// checks END against it.

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

    /// Called in each tick, before a stop determines an END of its own. unknown and STOPPING are above every
    /// number.
    void watch();
    /// Takes the role of a claim (E2 of ring/PROTOCOL.md) for a stream that another host sends. The sender to
    /// this stage is done and complete, so the stage has leased no number for a frame that does not exist. A
    /// block that is being rebuilt begins with this END.
    void end(const std::string& stage, u64 at, const std::string& why);
    /// The dead supervisor may have saved the END without lowering it in the block.
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
