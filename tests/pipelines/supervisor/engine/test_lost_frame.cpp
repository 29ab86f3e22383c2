// The time at which a frame that a sink has not delivered is lost here: the ledgers and the tails are read
// while the processes run.
#include "supervisor/engine/progress.hpp"

#include <memory>

#include "ring/topology.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using telemetry::undelivered_frame;

run_setup source_and_sink() {
    run_setup s;
    for (const char* name : {"source", "sink"}) {
        stage_setup st;
        st.spec.name = name;
        s.stages.push_back(st);
    }
    s.stages[0].format = {{"type", "t"}};
    s.stages[0].slot_bytes = 512;
    s.stages[1].spec.input_indices = {0};
    return s;
}

}  // namespace

TEST_CASE("a frame that is owed before and after the tails were read is lost, one in a ring is not") {
    const run_setup setup = source_and_sink();
    const auto block = std::make_unique<shm::control_block>();
    ring::initialise(*block, plan_of(setup));
    const auto undelivered = [] { return undelivered_frame{17, "sink"}; };
    CHECK_FALSE(find_lost_frame(setup, *block, *block, undelivered));
    block->link[0].tail.store(17);
    CHECK_FALSE(find_lost_frame(setup, *block, *block, undelivered));
    block->link[0].tail.store(18);
    const auto lost = find_lost_frame(setup, *block, *block, undelivered);
    REQUIRE(lost);
    CHECK(lost->frame == 17);
    CHECK(lost->sink == "sink");
    CHECK_FALSE(find_lost_frame(setup, *block, *block, [] { return undelivered_frame{}; }));
}

TEST_CASE("a frame delivered between the polls of ledgers and tails is not lost") {
    const run_setup setup = source_and_sink();
    const auto block = std::make_unique<shm::control_block>();
    ring::initialise(*block, plan_of(setup));
    block->link[0].tail.store(17);
    u64 marked = 17;
    CHECK_FALSE(find_lost_frame(setup, *block, *block, [&] {
        const undelivered_frame undelivered{marked, "sink"};
        marked = 18;
        block->link[0].tail.store(18);
        return undelivered;
    }));
}
