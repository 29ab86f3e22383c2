// The states of a run that are problems, and the times at which they are reported.
#include <memory>

#include "core/clock.hpp"
#include "ring/topology.hpp"
#include "supervisor/engine/problems.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

run_setup two_stages() {
    run_setup s;
    s.name = "two";
    s.directory = "/nonexistent";
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

struct made_run {
    run_setup setup = two_stages();
    std::unique_ptr<shm::control_block> block = std::make_unique<shm::control_block>();
    event_loop loop;
    console out{-1, false, false};
    process_table table{setup, loop, out};
    problems found;
    u64 now = 100 * ns_per_s;

    made_run() {
        ring::initialise(*block, plan_of(setup));
        for (const auto& s : table.seats)
            for (const seat_event e : {seat_event::bring_up, seat_event::spawned, seat_event::ready})
                s->machine.on(e, now);
    }
    void set_all(ring::slot_state state) const {
        for (u32 k = 0; k < block->link[0].slots; ++k)
            block->link[0].slot[k].store(ring::slot_word{0, 0, 0, state}.pack());
    }
    /// The problems that are reported within the next second and a half.
    std::vector<std::string> lines() {
        std::vector<std::string> all;
        for (int k = 0; k < 6; ++k, now += 250 * ns_per_ms)
            for (std::string& each : found.tick(setup, *block, table.seats, now))
                all.push_back(std::move(each));
        return all;
    }
};

}  // namespace

TEST_CASE("problems: a healthy run has none") {
    made_run r;
    CHECK(r.lines().empty());
    CHECK(r.found.present(r.now).empty());
    CHECK(r.found.all(0).empty());
}

TEST_CASE("problems: a ring without a free buffer is reported only if quarantine is the cause") {
    made_run r;
    r.set_all(ring::slot_state::ready);
    CHECK(r.lines().empty());
    r.set_all(ring::slot_state::quarantined);
    const u64 since = r.now;
    const std::vector<std::string> lines = r.lines();
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], test::contains("source: no buffer of its ring is free"));
    CHECK(r.found.present(r.now).size() == 1);
    CHECK(r.lines().empty());  // once
    r.set_all(ring::slot_state::free);
    CHECK(r.lines().empty());
    CHECK(r.found.present(r.now).empty());
    const nlohmann::json all = r.found.all(since - ns_per_s);
    REQUIRE(all.size() == 1);
    CHECK(all[0]["at_s"] == 1.0);
    CHECK(all[0]["lasted_s"] == 3.0);
}

TEST_CASE("problems: a condition that lasts less than a second is not reported") {
    made_run r;
    r.set_all(ring::slot_state::quarantined);
    CHECK(r.found.tick(r.setup, *r.block, r.table.seats, r.now).empty());
    r.now += 500 * ns_per_ms;
    CHECK(r.found.tick(r.setup, *r.block, r.table.seats, r.now).empty());
    r.set_all(ring::slot_state::free);
    r.now += 500 * ns_per_ms;
    CHECK(r.lines().empty());
    CHECK(r.found.all(0).empty());
}

TEST_CASE("problems: a stage that dies before it delivers is reported during its delay") {
    made_run r;
    seat& sink = *r.table.seats[1];
    sink.last_exit = "exit code 3";
    sink.machine.on(seat_event::died_fresh, r.now);
    REQUIRE(sink.machine.state() == seat_state::backoff);
    const std::vector<std::string> lines = r.lines();
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], test::contains("sink dies before it delivers a frame (exit code 3; 1 in a row)"));
}

TEST_CASE("problems: any stage without a process and any paused stage is reported") {
    for (const u32 k : {0U, 1U})
        for (const seat_event what : {seat_event::take_down, seat_event::pause}) {
            made_run r;
            seat& s = *r.table.seats[k];
            s.machine.on(what, r.now);
            if (what == seat_event::take_down) s.machine.on(seat_event::died_outside, r.now);
            const std::vector<std::string> lines = r.lines();
            REQUIRE(lines.size() == 1);
            const std::string name = k == 0 ? "source" : "sink";
            const bool paused = what == seat_event::pause;
            CHECK_THAT(lines[0], test::contains(name + (paused ? " is paused: " : " is down: ")));
            CHECK_THAT(lines[0], test::contains("until `carousel " + std::string(paused ? "cont " : "up ") +
                                                name + "`"));
            CHECK_THAT(lines[0],
                       test::contains(k == 0 ? "no new frame is produced" : "upstream stages block"));
        }
}

TEST_CASE("problems: an optional stage is left out once all of its instances have failed") {
    run_setup setup = two_stages();
    setup.stages[1].spec.optional = true;
    setup.stages[1].spec.instances = 2;
    const auto block = std::make_unique<shm::control_block>();
    ring::initialise(*block, plan_of(setup));
    event_loop loop;
    console out{-1, false, false};
    const process_table table{setup, loop, out};
    REQUIRE(table.seats.size() == 3);
    const u64 now = 100 * ns_per_s;
    const auto end = [&](u32 seat, seat_state state) { table.seats[seat]->machine.resume(state, now, 0); };
    const auto lines = [&] {
        problems found;
        CHECK(found.tick(setup, *block, table.seats, now).empty());
        return found.tick(setup, *block, table.seats, now + 2 * ns_per_s);
    };
    end(0, seat_state::running);
    const bool first_is_down = GENERATE(true, false);
    end(1, first_is_down ? seat_state::down : seat_state::failed);
    end(2, first_is_down ? seat_state::failed : seat_state::down);
    REQUIRE(lines().size() == 1);
    CHECK_THAT(lines()[0], test::contains("sink is down"));
    end(1, seat_state::failed);
    end(2, seat_state::failed);
    REQUIRE(lines().size() == 1);
    CHECK_THAT(lines()[0], test::contains("sink has failed and is skipped"));
}

TEST_CASE("problems: a short one is shown for a minute and reported permanently") {
    made_run r;
    r.found.report("the control block was damaged", r.now);
    CHECK(r.found.present(r.now + ns_per_s).size() == 1);
    CHECK(r.found.present(r.now + 61 * ns_per_s).empty());
    CHECK(r.found.all(r.now - ns_per_s).size() == 1);
}
