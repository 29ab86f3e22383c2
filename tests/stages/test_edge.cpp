// Stages at the edge of a run: a source that determines when a frame is ready, a sink that waits for another
// host.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/clock.hpp"
#include "ledger/ledger.hpp"
#include "stages/runner/delivered.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

TEST_CASE("a source that is not ready starts no frame and stops its clocks, then continues") {
    threads_of_a_run run({.stages = 2, .frames = 12, .work_us = 10});
    shm::incarnation& entry = run.control().entry[0];
    std::vector<u64> committed;
    std::atomic<u64> paused{0}, wrong{0}, next{0};
    run.source().at_committed = [&](u64 frame_number) {
        if (frame_number != committed.size()) wrong.fetch_add(1);
        committed.push_back(frame_number);
    };
    run.source().at_ready = [&](u64 frame_number, u64 done_below) {
        if (done_below > frame_number || frame_number < next.load()) wrong.fetch_add(1);
        next.store(frame_number);
        if (frame_number % 5 != 4) return true;
        // The stage waits until no frame is in flight, and is paused from then on.
        const bool is_paused = entry.pause.load() == static_cast<u64>(shm::pause_reason::link);
        if (is_paused && (done_below != frame_number || entry.paused_since_ns.load() == 0))
            wrong.fetch_add(1);
        paused.fetch_add(is_paused ? 1 : 0);
        return is_paused;
    };
    run.run();
    CHECK(wrong.load() == 0);
    CHECK(committed.size() == 12);
    CHECK(run.sink().frames.load() == 12);
    CHECK(run.sink().wrong.load() == 0);
    CHECK(paused.load() == 2);  // at 4 and at 9
    CHECK(entry.paused_since_ns.load() == 0);
}

TEST_CASE("a sink that waits for another host is held with its frames, and its clock restarts") {
    threads_of_a_run run({.stages = 2, .frames = 6, .work_us = 10});
    shm::incarnation& entry = run.control().entry[1];
    std::atomic<u32> paused{0}, free{0};
    run.sink().at_finish = [&](frame& f) {
        const u64 began = entry.finishing_since_ns.load();
        free.fetch_add(entry.paused_since_ns.load() == 0 ? 1 : 0);
        f.wait_for_link(true);
        f.wait_for_link(true);  // a second call has no effect
        paused.fetch_add(entry.pause.load() == static_cast<u64>(shm::pause_reason::link) ? 1 : 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (f.frame_number() % 2 == 0) return;  // the runner ends the wait
        f.wait_for_link(false);
        CHECK(entry.finishing_since_ns.load() > began);
    };
    run.run();
    CHECK(paused.load() == 6);
    CHECK(free.load() == 6);
    CHECK(entry.paused_since_ns.load() == 0);
}

TEST_CASE("the object of frame::local() is passed from process() to finish() of only its frame") {
    threads_of_a_run run({.stages = 2, .frames = 200, .work_us = 10});
    std::atomic<u64> wrong{0};
    run.sink().at_frame = [&](frame& f) {
        u64& here = f.local<u64>();
        if (here != 0) wrong.fetch_add(1);
        here = f.frame_number() + 1;
    };
    run.sink().at_finish = [&](frame& f) {
        if (f.local<u64>() != f.frame_number() + 1) wrong.fetch_add(1);
    };
    run.run();
    CHECK(wrong.load() == 0);
    CHECK(run.sink().frames.load() == 200);
}

TEST_CASE("the delivered frames of all sinks equal the contents of their ledgers, and increase") {
    threads_of_a_run run({.stages = 2, .frames = 9, .work_us = 10});
    stages::delivered unknown(run.control(), run.directory() + "/nowhere", 5);
    CHECK(unknown.below() == 5);  // no ledger: what an earlier run has delivered, and no more
    run.run();
    stages::delivered all(run.control(), run.directory(), 0);
    CHECK(all.below() == 9);
    CHECK(all.below() == 9);
}

TEST_CASE("a frame's carried data is final after process(): finish() can't change it") {
    // With canaries there are no helpers: no frame is committed, and its slot refilled, before its finish()
    // has returned.
    threads_of_a_run run({.stages = 3, .frames = 20, .work_us = 10, .canaries = true});
    std::atomic<u32> refused{0}, seen{0};
    run.stage(1).at_frame = [](frame& f) { f.metadata().set("twice", f.frame_number() * 2); };
    run.stage(1).at_finish = [&](frame& f) {
        CHECK(f.metadata().get<u64>("twice") == f.frame_number() * 2);
        // If these calls were accepted, neither would change the header, whose seal would stop the run.
        CHECK_THROWS_WITH(f.metadata().set("", 1), contains("can only be set in process()"));
        CHECK_THROWS_WITH((void)f.metadata().erase("none"), contains("can only be changed in process()"));
        CHECK_THROWS_AS(f.output().set_used("value", {1}), std::logic_error);
        refused.fetch_add(1);
    };
    run.sink().at_frame = [&](frame& f) {
        const auto all = f.metadata().entries();
        if (all.size() == 1 && f.metadata().get<u64>("twice") == f.frame_number() * 2) seen.fetch_add(1);
    };
    run.run();
    CHECK(refused.load() == 20);
    CHECK(seen.load() == 20);
}

TEST_CASE("finish() sees the carried inputs of process(), for any later content of the headers") {
    threads_of_a_run run({.stages = 2, .frames = 20, .work_us = 10});
    std::atomic<u32> same{0};
    run.source().at_frame = [](frame& f) { f.metadata().set("gain", f.frame_number()); };
    run.sink().at_finish = [&](frame& f) {
        if (f.frame_number() == 0)
            return;  // a slot that was never used has that number, too, and belongs to another frame
        bool as_before = true;
        for (u32 k = 0; k < run.control().link[0].slots; ++k) {
            shm::frame_header& h = run.control().frames[0].header[k];
            if (h.ring_sequence.load() != f.frame_number()) continue;
            const shm::used_extents was = h.used;
            const u32 bytes = h.metadata_bytes;
            h.used.planes = 1, h.metadata_bytes = 0;
            as_before = as_before && f.input(0).used() == nullptr &&
                        f.input_metadata(0).get<u64>("gain") == f.frame_number();
            h.used = was, h.metadata_bytes = bytes;
        }
        same.fetch_add(as_before ? 1 : 0);
    };
    run.run();
    CHECK(same.load() == 19);
}

TEST_CASE("a damaged word of the sinks' flags lets no sender release a frame") {
    threads_of_a_run run({.stages = 2, .frames = 9, .work_us = 10});
    run.run();
    shm::control_block& c = run.control();
    // a second sink, which has not begun anything
    std::snprintf(static_cast<char*>(c.stage[2].name), sizeof c.stage[2].name, "late");
    c.stage[2].inputs = 1;
    c.stage[2].input_link[0] = c.stage[2].input_group[0] = 0;
    std::fill(std::begin(c.stage[2].output_link), std::end(c.stage[2].output_link), shm::none);
    c.stages = 3;
    c.link[0].group_state[0].store(ring::group_word{0, 0, ring::group_state::blocking}.pack());
    const auto below = [&] { return stages::delivered(c, run.directory(), 0).below(); };
    REQUIRE(below() == 0);
    SECTION("its flags") { c.stage[2].flags ^= shm::stage_flag::latest; }
    SECTION("how many outputs it has") { c.stage[2].outputs ^= 1; }
    SECTION("where its output goes") { c.stage[2].output_link[0] ^= 1U << 31U; }
    SECTION("how many stages there are") { c.stages ^= 1; }
    SECTION("its group's state") { c.link[0].group_state[0].fetch_xor(1); }
    CHECK(below() == 0);
}

TEST_CASE("a sink without a claim is not asked for its frames") {
    threads_of_a_run run({.stages = 2, .frames = 9, .work_us = 10});
    run.run();
    shm::control_block& c = run.control();
    std::snprintf(static_cast<char*>(c.stage[2].name), sizeof c.stage[2].name, "late");
    c.stage[2].inputs = 1;
    c.stage[2].input_group[0] = 1;
    std::fill(std::begin(c.stage[2].output_link), std::end(c.stage[2].output_link), shm::none);
    c.stages = 3;
    REQUIRE(stages::delivered(c, run.directory(), 0).below() == 0);
    telemetry::frame_claims claims;
    claims.suspend(0);  // as the supervisor does for a sink that reads only the newest frames, or is left out
    claims.save(telemetry::ledger_path(run.directory(), "late"));
    CHECK(stages::delivered(c, run.directory(), 0).below() == 9);
}
