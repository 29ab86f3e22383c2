// The rule that names what limits a pipeline.
#include "telemetry/bottleneck.hpp"

#include "core/clock.hpp"
#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_series.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::telemetry;
using kind = bottleneck::kind;

namespace {

/// geometry, vertex, fragment, display: fragment works all the time, the stages before it wait for room, the
/// stage after it for frames.
std::vector<stage_load> demo() {
    std::vector<stage_load> all(4);
    all[0].shares = {0.2, 0, 0.85, 0.02};
    all[0].source = true;
    all[1].shares = {0.6, 0.05, 0.75, 0.1};
    all[2].shares = {0.98, 0.01, 0.01, 0.9};
    all[3].shares = {0.4, 0.65, 0, 0.1};
    return all;
}

kind kind_of(const std::vector<stage_load>& all, f64 fps = 0) { return find_bottleneck(all, fps).what; }

}  // namespace

TEST_CASE("the stage that waits for no other one is the bottleneck, at any place") {
    const bottleneck b = find_bottleneck(demo(), 0);
    CHECK(b.what == kind::stage);
    CHECK(b.stage == 2);
    CHECK(b.busy == 0.98);
    CHECK(describe(b, "fragment", 0) == "bottleneck: fragment (busy 98 %)");
    std::vector<stage_load> all = demo();
    all[2].shares = {0.5, 0.3, 0.3, 0};
    for (u32 k = 0; k < 4; ++k) {
        std::vector<stage_load> other = all;
        other[k].shares = {0.95, 0.02, 0.03, 0.5};
        CHECK(find_bottleneck(other, 0).stage == k);
    }
}

TEST_CASE("a stage that always has frames in flight but waits for its input is not the bottleneck") {
    std::vector<stage_load> all = demo();
    all[3].shares = {1, 0.9, 0, 0};  // several lanes: the device works while the next frame isn't there
    CHECK(find_bottleneck(all, 0).stage == 2);
}

TEST_CASE("of two equally loaded stages neither is the bottleneck") {
    std::vector<stage_load> all = demo();
    all[3].shares = {0.97, 0.02, 0, 0.9};
    CHECK(kind_of(all) == kind::none);
    CHECK(describe(find_bottleneck(all, 0), "", 0) == "no bottleneck found");
    all[3].shares = {0.92, 0.08, 0, 0.9};
    CHECK(find_bottleneck(all, 0).stage == 2);
}

TEST_CASE("if all stages have time left, none is the bottleneck") {
    std::vector<stage_load> all(3);
    for (stage_load& s : all) s.shares = {0.45, 0.3, 0.25, 0};
    CHECK(kind_of(all) == kind::none);
}

TEST_CASE("a source that waits for its clock: the pace limits, unless a stage can't keep it") {
    std::vector<stage_load> all = demo();
    for (stage_load& s : all) s.shares = {0.3, 0.7, 0, 0};
    CHECK(kind_of(all, 60) == kind::pace);
    CHECK(describe(find_bottleneck(all, 60), "", 60) == "limited by fps: 60 frames/s");
    CHECK(describe(find_bottleneck(all, 60), "", 29.97) == "limited by fps: 29.97 frames/s");
    all[2].shares = {0.99, 0.01, 0, 0.9};  // just keeps it
    CHECK(kind_of(all, 60) == kind::pace);
    all[0].shares = {0.3, 0.1, 0.6, 0};  // doesn't: the source waits for room more than for its clock
    CHECK(find_bottleneck(all, 60).stage == 2);
    CHECK(kind_of(demo(), 60) == kind::stage);
    CHECK(kind_of(all, 0) == kind::stage);
}

TEST_CASE("a stopped or down stage is named before any share, a starting one makes it unknown") {
    std::vector<stage_load> all = demo();
    all[1].condition = stage_condition::starting;
    CHECK(kind_of(all) == kind::unknown);
    all[3].condition = stage_condition::paused;
    const bottleneck paused = find_bottleneck(all, 60);
    CHECK(paused.what == kind::paused);
    CHECK(paused.stage == 3);
    CHECK(describe(paused, "display", 0) == "display is stopped, and the others wait for it");
    all[1].condition = stage_condition::down;
    const bottleneck down = find_bottleneck(all, 60);
    CHECK(down.what == kind::down);
    CHECK(down.stage == 1);
    CHECK(describe(down, "vertex", 0) == "vertex is down, and the others wait for it");
    all[1].required = all[3].required = false;  // the run continues without them
    CHECK(find_bottleneck(all, 0).stage == 2);
}

TEST_CASE("a latest reader blocks no stage") {
    std::vector<stage_load> all = demo();
    all[2].shares = {0.7, 0.1, 0.2, 0};
    all[3].shares = {1, 0, 0, 1};
    all[3].waited_for = false;
    CHECK(find_bottleneck(all, 0).stage == 2);
    all[3].condition = stage_condition::down;
    CHECK(find_bottleneck(all, 0).stage == 2);
}

TEST_CASE("without measurements no bottleneck is named") {
    CHECK(kind_of({}) == kind::unknown);
    CHECK(kind_of(std::vector<stage_load>(4)) == kind::unknown);
    CHECK(describe({}, "", 0).empty());
}

TEST_CASE("shares are of a seat's time and never above all of it") {
    const stage_shares one = shares_of({1'500, 100, 200, 600}, {500, 0, 0, 100}, 1'000, 2);
    CHECK(one.busy == 0.5);
    CHECK(one.wait_input == 0.05);
    CHECK(one.wait_output == 0.1);
    CHECK(one.wait_own == 0.25);
    // A wait that began before the span is counted when it ends.
    const stage_shares late = shares_of({1'300, 100, 0, 1'100}, {}, 1'000, 1);
    CHECK(late.busy == 1);
    CHECK(late.wait_input + late.wait_own <= 1.000001);
    CHECK(late.wait_own > 0.9);
    CHECK(late.own() <= 1);
    const stage_shares back = shares_of({1, 1, 1, 1}, {5, 5, 5, 5}, 1'000, 1);  // another run's counters
    CHECK(back.busy == 0);
    CHECK(shares_of({5, 5, 5, 5}, {}, 0, 1).busy == 0);
    const stage_shares turns = shares_of({900, 100, 100, 0, 600}, {}, 1'000, 1);
    CHECK(turns.wait_turn == 0.6);
    CHECK(turns.own() < 0.21);
}

TEST_CASE("if stages wait for their turns and none is the slowest, the GPU is the bottleneck") {
    const auto waits = [](f64 share) {
        stage_load l;
        l.shares.busy = 1;
        l.shares.wait_turn = share;
        return l;
    };
    const bottleneck b = find_bottleneck({waits(0.75), waits(0.75), waits(0.75)}, 0);
    CHECK(b.what == bottleneck::kind::gpu);
    CHECK(describe(b, "", 0) == "bottleneck: the GPU (its stages take turns)");
    CHECK(std::string(name_of(b.what)) == "gpu");
    const bottleneck one = find_bottleneck({waits(0.9), waits(0.1), waits(0.8)}, 0);
    CHECK(one.what == bottleneck::kind::stage);
    CHECK(one.stage == 1);
}

TEST_CASE("an optional stage that is down is waited for until the supervisor has closed its group") {
    snapshot s;
    s.stages.resize(2);
    s.seats.resize(2);
    s.links.resize(1);
    s.stages[0].source = true;
    s.stages[1].inputs = {0};
    s.stages[1].flags = shm::stage_flag::optional;
    for (u32 k = 0; k < 2; ++k) s.stages[k].first_seat = k, s.stages[k].seats = 1;
    s.seats[0].state = ring::entry_state::live;
    s.seats[1].state = ring::entry_state::fenced;
    s.links[0].groups.resize(1);
    s.links[0].groups[0].stage = 1;
    s.links[0].groups[0].state = ring::group_state::blocking;
    rates r;
    r.span_s = 1;
    r.stages.resize(2);
    CHECK(find_bottleneck(s, r).what == kind::down);
    CHECK(find_bottleneck(s, r).stage == 1);
    s.links[0].groups[0].state = ring::group_state::closed;
    CHECK(find_bottleneck(s, r).what != kind::down);
}
