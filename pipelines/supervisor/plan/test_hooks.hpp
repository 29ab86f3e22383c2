#pragma once
// Settings that a test makes for a supervisor, to trigger quickly a situation that otherwise takes hours or
// needs a GPU or a process that hangs in the kernel. The command line reads them once; the code that uses
// them gets them as an argument.

#include <optional>

#include "core/types.hpp"
#include "ring/topology.hpp"

namespace carousel::supervisor {

struct test_hooks {
    /// CAROUSEL_TEST_KILL_DELAY_MS: unwanted processes remain alive for this time, like a process in state D
    u64 kill_delay_ns = 0;
    /// CAROUSEL_TEST_KEEP_RECORDS: newest records kept in each sink's ledger; older ones are folded
    /// (ledger/ledger_fold.hpp)
    std::optional<u64> kept_records;
    /// CAROUSEL_TEST_COUNTERS=near-their-ends: a short run reaches counter values that otherwise take hours
    ring::first_counters counters;
    bool depth_on_cpu = false;  ///< CAROUSEL_TEST_DEPTH_ON_CPU: depths are planned and chosen as on a GPU
    bool mps_on_cpu = false;    ///< CAROUSEL_TEST_MPS_ON_CPU: stages on the CPU are clients of an MPS domain

    bool overruns_anywhere = false;  ///< CAROUSEL_TEST_OVERRUNS_ANYWHERE: accepted unguarded, too
    /// CAROUSEL_TEST_SCRIBBLES_ANYWHERE: the same for scribble-control and scribble-input
    bool scribbles_anywhere = false;
    bool audits_at_deaths_alone = false;  ///< CAROUSEL_TEST_AUDITS_AT_DEATHS_ALONE: no audit once per second

    [[nodiscard]] static test_hooks of_environment();
};

}  // namespace carousel::supervisor
