// The time that a run's frames took, from the words of its stages.
#include "supervisor/engine/report_figures.hpp"

#include <memory>

#include "ring/topology.hpp"
#include "ring/words.hpp"
#include "supervisor/engine/report.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

constexpr u64 started = 1000, tick = 9000;

/// source -> middle -> sink, with a process of each in the entries 0 to 2.
std::unique_ptr<shm::control_block> block_of_three() {
    run_setup s;
    for (const char* name : {"source", "middle", "sink"}) {
        stage_setup st;
        st.spec.name = name;
        if (!s.stages.empty()) st.spec.input_indices = {static_cast<u32>(s.stages.size() - 1)};
        if (s.stages.size() < 2) {
            st.format = {{"type", "t"}};
            st.slot_bytes = 512;
        }
        s.stages.push_back(st);
    }
    auto block = std::make_unique<shm::control_block>();
    ring::initialise(*block, plan_of(s));
    for (u32 k = 0; k < 3; ++k)
        block->entry[k].identity.store(ring::entry_word{17, 1, k, ring::entry_state::live}.pack());
    return block;
}

}  // namespace

TEST_CASE("a run that begins and ends between two ticks lasts from its first claim to its last commit") {
    const auto block = block_of_three();
    shm::control_block& c = *block;
    c.entry[0].first_commit_ns.store(2500);
    c.entry[1].first_commit_ns.store(2600);
    c.frames[0].header[0].meta.born_ns = 2000;
    c.frames[0].header[1].meta.born_ns = 2200;
    c.entry[0].last_commit_ns.store(6000);
    c.entry[2].last_commit_ns.store(7000);
    CHECK(first_frame_ns(c, started, tick) == 2000);
    CHECK(last_delivery_ns(c, 2000, tick) == 7000);
}

TEST_CASE("without the first frame's header a run begins with the first commit of its source") {
    const auto block = block_of_three();
    block->entry[0].first_commit_ns.store(2500);
    block->frames[0].header[0].meta.born_ns = 4000;
    block->frames[1].header[0].meta.born_ns = 2100;  // of another ring: a copy, with the maker's own time
    CHECK(first_frame_ns(*block, started, tick) == 2500);
}

TEST_CASE("words that are unwritten, damaged or of another run give no time: the tick counts") {
    const auto block = block_of_three();
    CHECK(first_frame_ns(*block, started, tick) == tick);
    CHECK(last_delivery_ns(*block, started, tick) == tick);
    block->entry[0].first_commit_ns.store(started - 1);
    block->frames[0].header[0].meta.born_ns = ~u64{0};
    block->entry[2].last_commit_ns.store(tick + 1);
    CHECK(first_frame_ns(*block, started, tick) == tick);
    CHECK(last_delivery_ns(*block, started, tick) == tick);
    block->entry[2].last_commit_ns.store(7000);
    block->entry[2].identity.store(block->entry[2].identity.load() ^ 1U << 20U);
    CHECK(last_delivery_ns(*block, started, tick) == tick);
}

TEST_CASE("the rate of a run counts only the frames of this run") {
    run_outcome o;
    o.first = 100;
    o.end = 300;
    CHECK(o.frames_per_second() == 0);
    o.seconds = 0.5;
    CHECK(o.frames_per_second() == 400);
}
