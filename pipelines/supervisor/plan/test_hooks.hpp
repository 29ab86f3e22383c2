#pragma once
// What a test asks of a supervisor, so that it sees at once what else takes hours, a GPU, or a process that
// hangs in the kernel. The command line reads it, once; whoever obeys it gets it handed in.

#include <optional>

#include "core/types.hpp"
#include "ring/topology.hpp"

namespace carousel::supervisor {

struct test_hooks {
    /// CAROUSEL_TEST_KILL_DELAY_MS: the unwanted live on so long, as one in state D would
    u64 kill_delay_ns = 0;
    /// CAROUSEL_TEST_KEEP_RECORDS: of each sink's ledger, the newest; older ones are folded
    /// (telemetry/ledger_fold.hpp)
    std::optional<u64> kept_records;
    /// CAROUSEL_TEST_COUNTERS=near-their-ends: a short run sees what a long one does after hours
    ring::first_counters counters;
    bool depth_on_cpu = false;  ///< CAROUSEL_TEST_DEPTH_ON_CPU: depths are planned and chosen as on a GPU
    bool mps_on_cpu = false;    ///< CAROUSEL_TEST_MPS_ON_CPU: stages on the CPU are clients of an MPS domain

    bool overruns_anywhere = false;  ///< CAROUSEL_TEST_OVERRUNS_ANYWHERE: the fault is taken unguarded, too
    /// CAROUSEL_TEST_SCRIBBLES_ANYWHERE: so are scribble-control and -input
    bool scribbles_anywhere = false;
    bool audits_at_deaths_alone =
        false;  ///< CAROUSEL_TEST_AUDITS_AT_DEATHS_ALONE: and not once a second, too

    [[nodiscard]] static test_hooks of_environment();
};

}  // namespace carousel::supervisor
