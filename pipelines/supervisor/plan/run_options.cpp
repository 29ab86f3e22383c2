#include "supervisor/plan/run_options.hpp"

#include <cstdlib>
#include <string_view>

#include "core/clock.hpp"

namespace carousel::supervisor {

test_hooks test_hooks::of_environment() {
    test_hooks h;
    if (const char* ms = std::getenv("CAROUSEL_TEST_KILL_DELAY_MS"))
        h.kill_delay_ns = std::strtoull(ms, nullptr, 10) * ns_per_ms;
    if (const char* records = std::getenv("CAROUSEL_TEST_KEEP_RECORDS"))
        h.kept_records = std::strtoull(records, nullptr, 10);
    if (const char* where = std::getenv("CAROUSEL_TEST_COUNTERS");
        where != nullptr && std::string_view(where) == "near-their-ends")
        h.counters = ring::counters_near_overflow;
    h.depth_on_cpu = std::getenv("CAROUSEL_TEST_DEPTH_ON_CPU") != nullptr;
    h.mps_on_cpu = std::getenv("CAROUSEL_TEST_MPS_ON_CPU") != nullptr;
    h.overruns_anywhere = std::getenv("CAROUSEL_TEST_OVERRUNS_ANYWHERE") != nullptr;
    h.scribbles_anywhere = std::getenv("CAROUSEL_TEST_SCRIBBLES_ANYWHERE") != nullptr;
    h.audits_at_deaths_alone = std::getenv("CAROUSEL_TEST_AUDITS_AT_DEATHS_ALONE") != nullptr;
    return h;
}

}  // namespace carousel::supervisor
