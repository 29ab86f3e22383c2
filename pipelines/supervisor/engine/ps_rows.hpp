#pragma once
// The contents of `carousel ps`.

#include <vector>

#include "control/ps_message.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/problems.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/report_figures.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/mps/mps_domain.hpp"

namespace carousel::supervisor {

/// The data that the reply is made from.
struct ps_sources {
    const run_setup& setup;
    const std::string& run_id;
    const process_table& seats;
    const memory_store& memory;
    const block_custodian& block;
    const run_phase& phase;
    const progress& rates;
    const stage_times& times;
    const problems& degraded;
    const run_facts& facts;
    const run_extensions& extensions;
};

[[nodiscard]] run::ps_answer ps_answer_of(const ps_sources& in);

}  // namespace carousel::supervisor
