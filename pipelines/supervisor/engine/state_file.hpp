#pragma once
// DIR/state.json contains the counters and intentions of this process for its successor (takeover.hpp). It is
// written after each event that changes them.

#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/parameters.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"

namespace carousel::supervisor {

class state_file {
public:
    state_file(const run_setup& setup, process_table& seats, const block_custodian& block,
               const live_parameters& parameters, const run_phase& phase, const run_facts& facts,
               const run_extensions& extensions)
        : setup_(&setup),
          seats_(&seats),
          block_(&block),
          parameters_(&parameters),
          phase_(&phase),
          facts_(&facts),
          extensions_(&extensions) {}

    /// True if save() would write: something has changed since the last call.
    [[nodiscard]] bool is_due() const;
    /// Writes the file. Saves the state. A failure is logged once, because a successor would then count from
    /// 0.
    void save();
    /// Returns the data that a dead supervisor has saved; null: there is none that can be read.
    [[nodiscard]] nlohmann::json read() const;

private:
    [[nodiscard]] u64 fingerprint() const;

    const run_setup* setup_;
    process_table* seats_;
    const block_custodian* block_;
    const live_parameters* parameters_;
    const run_phase* phase_;
    const run_facts* facts_;
    const run_extensions* extensions_;
    u64 saved_print_ = 0;
    bool failed_ = false;
};

}  // namespace carousel::supervisor
