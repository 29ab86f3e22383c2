// The snapshot module: what it reads from every kind of run, and that a damaged block has no other effect.

#include <algorithm>
#include <cstring>
#include <random>

#include "core/clock.hpp"
#include "ring/latest.hpp"
#include "ring/parameter_box.hpp"
#include "shm/segment.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"
#include "tests/support/catch.hpp"
#include "tests/viewer/rig.hpp"

using namespace carousel;
using namespace carousel::telemetry;
using test::rig;

TEST_CASE("a block of zeros is an empty run") {
    const auto c = std::make_unique<shm::control_block>();
    const snapshot s = read_snapshot(*c);
    CHECK(s.stages.empty());
    CHECK(s.links.empty());
    CHECK(s.seats.empty());
    CHECK(s.stage_name(0) == "?");
    CHECK(s.seat_label(7) == "?");
}

TEST_CASE("restarts are counted from the seat's first epoch, also where epochs come round") {
    ring::plan plan = test::demo_plan(64, 32);
    plan.first = ring::counters_near_overflow;
    rig r(plan);
    CHECK(read_snapshot(r.block()).seats[1].restarts() == 0);
    for (u32 turn = 1; turn <= 5; ++turn) {
        r.sit(1);
        const snapshot s = read_snapshot(r.block());
        CHECK(s.seats[1].turn == turn);
        CHECK(s.seats[1].restarts() == turn - 1);
        r.die(1);
        r.retire(1);
    }
}

TEST_CASE("a run without any process yet shows its stages and free slots") {
    rig r(test::demo_plan(64, 32));
    const snapshot s = read_snapshot(r.block());
    REQUIRE(s.stages.size() == 4);
    CHECK(s.stages[2].name == "fragment");
    CHECK(s.seats[2].epoch == 0);
    CHECK(s.seats[2].restarts() == 0);
    REQUIRE(s.links.size() == 3);
    CHECK(s.links[2].slots.size() == r.block().link[2].slots);
    for (const slot_view& k : s.links[2].slots) CHECK(k.phase == slot_phase::free);
    CHECK(s.links[2].newest == 0);
    CHECK_FALSE(s.ended());
}

TEST_CASE("a running pipeline: states, frames, positions, groups and the writer of each slot") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    for (int k = 0; k < 10; ++k) r.turn();
    REQUIRE(r.pass(0));
    REQUIRE(r.pass(0));
    REQUIRE(r.begin(1));
    const snapshot s = read_snapshot(r.block());
    CHECK(s.seats[1].state == ring::entry_state::live);
    CHECK(s.seats[1].epoch == 1);
    CHECK(s.seats[1].jobs_in_flight == 1);
    CHECK(s.links[0].tail == 10);
    CHECK(s.links[0].newest == 12);
    const auto count = [](const link_view& l, slot_phase p) {
        return std::count_if(l.slots.begin(), l.slots.end(),
                             [p](const slot_view& v) { return v.phase == p; });
    };
    CHECK(count(s.links[0], slot_phase::leased) == 1);
    CHECK(count(s.links[0], slot_phase::ready) == 1);
    CHECK(count(s.links[1], slot_phase::fill) == 1);
    const auto fill = std::find_if(s.links[1].slots.begin(), s.links[1].slots.end(),
                                   [](const slot_view& v) { return v.phase == slot_phase::fill; });
    CHECK(s.stage_name(fill->stage) == "vertex");
    REQUIRE(s.links[0].groups.size() == 1);
    CHECK(s.stage_name(s.links[0].groups[0].stage) == "vertex");
    CHECK(s.links[0].groups[0].lag == 2);
    CHECK(s.links[0].groups[0].leases == 1);
    CHECK(s.links[0].groups[0].next == 10);
}

TEST_CASE(
    "a frame that a sink does not take is not part of its lag, and is done before any process passes it") {
    ring::plan plan = test::demo_plan(64, 32);
    plan.stages[3].every = 3;
    rig r(plan);
    r.sit_all();
    for (int k = 0; k < 3; ++k)
        for (u32 stage = 0; stage < 3; ++stage) REQUIRE(r.pass(stage));
    const snapshot s = read_snapshot(r.block());
    const link_view& l = s.links[2];
    CHECK(l.tail == 0);
    CHECK(l.newest == 3);
    REQUIRE(l.groups.size() == 1);
    CHECK(l.groups[0].lag == 1);
    CHECK(l.groups[0].next == 0);
    CHECK(std::count_if(l.slots.begin(), l.slots.end(),
                        [](const slot_view& v) { return v.phase == slot_phase::done; }) == 2);
}

TEST_CASE("a latest reader is a group that belongs to no stage") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    ring::latest_reader tap(r.block(), 2, shm::max_incarnations);
    REQUIRE(tap.joined());
    REQUIRE(r.pass(0));
    REQUIRE(r.pass(1));
    REQUIRE(r.pass(2));
    REQUIRE(tap.acquire());
    const snapshot s = read_snapshot(r.block());
    REQUIRE(s.links[2].groups.size() == 2);
    const group_view& g = s.links[2].groups[1];
    CHECK(g.state == ring::group_state::latest);
    CHECK(g.stage == shm::none);
    CHECK(g.leases == 1);
    CHECK(g.lease_since_ns != 0);
}

TEST_CASE("a crash quarantines the slots in progress, and the successor has the next epoch") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    REQUIRE(r.pass(0));
    REQUIRE(r.pass(0));
    REQUIRE(r.begin(1));
    REQUIRE(r.begin(1));
    event_tracker events;
    events.feed(read_snapshot(r.block()));
    r.die(1);
    const snapshot dying = read_snapshot(r.block());
    events.feed(dying);
    CHECK(dying.seats[1].epoch == 2);
    CHECK(dying.seats[1].unfenced == 1);
    CHECK(std::count_if(dying.links[1].slots.begin(), dying.links[1].slots.end(),
                        [](const slot_view& v) { return v.phase == slot_phase::quarantined; }) == 2);
    REQUIRE(events.last_crash().has_value());
    CHECK(events.last_crash()->label == "vertex");
    CHECK(events.last_crash()->back_ns == 0);
    CHECK(events.take_deaths().size() == 1);
    CHECK(events.take_deaths().empty());
    r.retire(1);
    r.sit(1);
    const snapshot back = read_snapshot(r.block());
    events.feed(back);
    CHECK(back.seats[1].restarts() == 1);
    CHECK(back.seats[1].unfenced == 0);
    CHECK(events.last_crash()->back_ns != 0);
    events.explain(1, "signal 9 (SIGKILL)");
    CHECK(events.last_crash()->how == "signal 9 (SIGKILL)");
    CHECK(std::any_of(events.events().begin(), events.events().end(), [](const run_event& e) {
        return e.text.find("died: signal 9 (SIGKILL)") != std::string::npos;
    }));
}

TEST_CASE("an end that a user requested is shown as requested, not as a crash with a successor") {
    const auto [why, command, follows] = GENERATE(table<ring::requested_end, std::string, std::string>(
        {{ring::requested_end::down, "down",
          "the stages that need its frames wait until `carousel up vertex`"},
         {ring::requested_end::restart, "restart", "its successor is being started"}}));
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    event_tracker events;
    events.feed(read_snapshot(r.block()));
    r.block().entry[r.entry_of(1)].exit_note.store(ring::note_requested_end(why));
    r.die(1);
    const snapshot after = read_snapshot(r.block());
    events.feed(after);
    REQUIRE(events.last_crash().has_value());
    const std::string sentence = "vertex (pid " + std::to_string(events.last_crash()->old_pid) +
                                 ") was ended by `carousel " + command + "`";
    CHECK(describe(*events.last_crash()) == sentence);
    CHECK(describe_vacancy(*events.last_crash(), "") == follows);
    CHECK(events.events().back().text == sentence);
    CHECK(events.events().back().kind == event_kind::warning);
    events.explain(1, "signal 9 (SIGKILL)");  // of an earlier process: the supervisor's report may be old
    CHECK(describe(*events.last_crash()) == sentence);
}

TEST_CASE("the step after a death is named by the state of its seat") {
    crash c;
    c.label = "vertex";
    CHECK(describe_vacancy(c, "starting") == "its successor is being started");
    CHECK(describe_vacancy(c, "failed") ==
          "it has failed and is not restarted (`carousel up vertex` starts it)");
    CHECK(describe_vacancy(c, "backoff") ==
          "its successor is started after a delay, because it died before it delivered a frame");
    CHECK(describe_vacancy(c, "down") == "the stages that need its frames wait until `carousel up vertex`");
}

TEST_CASE("64 slots, 12 stages and names of full length are all shown") {
    ring::plan p = test::chain_of(12);
    for (ring::stage_plan& s : p.stages) {
        s.name.resize(60, 'x');
        s.in_flight = 8;
        s.window = 47;
    }
    rig r(p);
    r.sit_all();
    for (int k = 0; k < 40; ++k) r.turn();
    const snapshot s = read_snapshot(r.block());
    CHECK(s.stages.size() == 12);
    CHECK(s.stages[3].name.size() == 47);
    for (const link_view& l : s.links) CHECK(l.slots.size() == 64);
}

TEST_CASE("rates are computed from the span between snapshots, latencies only from its samples") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    rate_tracker tracker(2.0);
    snapshot s = read_snapshot(r.block());
    s.taken_ns = 1'000'000'000;
    add_sample(r.block().stage[2].counters.latency, 900 * ns_per_ms);  // before the span
    snapshot first = read_snapshot(r.block());
    first.taken_ns = s.taken_ns;
    CHECK(tracker.feed(first).span_s == 0);
    for (int k = 0; k < 30; ++k) {
        r.turn();
        r.block().stage[2].counters.frames.fetch_add(1);
        r.block().link[2].committed.fetch_add(0);
        add_sample(r.block().stage[2].counters.latency, 5 * ns_per_ms);
    }
    snapshot later = read_snapshot(r.block());
    later.taken_ns = first.taken_ns + ns_per_s;
    const rates& now = tracker.feed(later);
    CHECK(now.span_s == test::near(1.0));
    const f64 counted = static_cast<f64>(later.stages[2].frames - first.stages[2].frames);
    CHECK(now.stages[2].frames_per_second == test::near(counted));
    CHECK(now.stages[2].latency_p99_ms < 10);
    CHECK(now.stages[2].latency_p50_ms >= 5);
    CHECK(now.links[2].received_per_second == test::near(30));
    history h;
    h.feed(later, now);
    CHECK(h.samples().size() == 1);
    snapshot other = later;
    other.run_id = "another";
    CHECK(tracker.feed(other).span_s == 0);
}

TEST_CASE("the timeline keeps every frame's stamps, also of slots that are free again") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    timeline t;
    for (int k = 0; k < 5; ++k) {
        r.turn();
        t.feed(read_snapshot(r.block()));
    }
    REQUIRE(t.bars().size() == 4);
    REQUIRE(t.bars()[2].size() == 5);
    for (const frame_bar& bar : t.bars()[2]) {
        CHECK(bar.claimed_ns <= bar.submitted_ns);
        CHECK(bar.submitted_ns <= bar.committed_ns);
        CHECK(bar.done_ns != 0);
    }
}

TEST_CASE("a fork's frame is done when it has passed all rings, the fullest of which delays it") {
    rig r(test::forked_plan());
    r.sit_all();
    timeline t;
    const auto limiting = [&] {
        const snapshot s = read_snapshot(r.block());
        t.feed(s);
        REQUIRE(s.stages[0].outputs.size() == 2);
        CHECK(s.links[1].name == "fork.square");
        CHECK(s.fullest_output(1) == nullptr);  // a sink has none
        return s.fullest_output(0)->name;
    };
    REQUIRE((r.pass(0) && r.pass(1)));
    CHECK(limiting() == "fork.square");
    REQUIRE(t.bars()[0].size() == 1);
    CHECK(t.bars()[0][0].committed_ns != 0);
    CHECK(t.bars()[0][0].done_ns == 0);
    REQUIRE(r.pass(2));
    CHECK(limiting() == "fork");  // both are empty
    CHECK(t.bars()[0][0].done_ns != 0);
}

TEST_CASE("a frame in progress is a bar with an open end, also at a sink, until it is committed") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    for (u32 k = 0; k < 3; ++k) REQUIRE(r.pass(k));
    REQUIRE(r.begin(3));
    timeline t;
    t.feed(read_snapshot(r.block()));
    REQUIRE(t.bars()[3].size() == 1);
    CHECK(t.bars()[3][0].claimed_ns != 0);
    CHECK(t.bars()[3][0].committed_ns == 0);
    REQUIRE(r.finish(3));
    t.feed(read_snapshot(r.block()));
    CHECK(t.bars()[3][0].committed_ns != 0);
}

TEST_CASE("the records of one tracker can be passed to another, once") {
    rig r(test::demo_plan(64, 32));
    r.sit_all();
    event_tracker watching, shown;
    watching.feed(read_snapshot(r.block()));
    r.die(1);
    watching.feed(read_snapshot(r.block()));
    shown.merge(watching);
    CHECK(shown.events().size() == 2);
    CHECK(watching.events().empty());
    CHECK(shown.take_deaths().size() == 1);
    shown.explain(1, "signal 9 (SIGKILL)");
    r.retire(1);
    r.sit(1);
    watching.feed(read_snapshot(r.block()));
    shown.merge(watching);
    CHECK(shown.events().size() == 3);
    CHECK(shown.last_crash()->how == "signal 9 (SIGKILL)");
    CHECK(shown.last_crash()->back_ns >= shown.last_crash()->died_ns);
}

TEST_CASE("a stage's times are read from its counters, as shares of the span per seat") {
    ring::plan p = test::demo_plan(64, 32);
    p.stages[2].instances = 2;
    rig r(p);
    const snapshot a = read_snapshot(r.block());
    shm::stage_counters& n = r.block().stage[2].counters;
    n.busy_ns.fetch_add(1800 * ns_per_ms);
    n.wait_input_ns.fetch_add(200 * ns_per_ms);
    n.wait_output_ns.fetch_add(400 * ns_per_ms);
    n.wait_own_ns.fetch_add(1000 * ns_per_ms);
    snapshot b = read_snapshot(r.block());
    b.taken_ns = a.taken_ns + ns_per_s;
    rate_tracker tracker;
    (void)tracker.feed(a);
    const stage_shares t = tracker.feed(b).stages[2].time;
    CHECK(t.busy == test::near(0.9));
    CHECK(t.wait_input == test::near(0.1));
    CHECK(t.wait_output == test::near(0.2));
    CHECK(t.wait_own == test::near(0.5));
}

TEST_CASE("the end of a run is seen when all rings have reached it") {
    ring::plan p = test::demo_plan(64, 32);
    p.end = 3;
    rig r(p);
    r.sit_all();
    r.turn();
    CHECK_FALSE(read_snapshot(r.block()).ended());
    for (int k = 0; k < 3; ++k) r.turn();
    CHECK(read_snapshot(r.block()).ended());
}

TEST_CASE("the newest set of parameters is read whole, with its number and its first frame") {
    rig r(test::demo_plan(64, 32));
    CHECK(read_snapshot(r.block()).parameter_bytes == 0);
    std::array<std::byte, 24> values{};
    ring::initialise_parameters(r.block().parameters, values, 0);
    values.back() = std::byte{7};
    const std::optional<u64> from = ring::publish(r.block().parameters, values, 0);
    REQUIRE(from);
    const snapshot s = read_snapshot(r.block());
    CHECK(s.parameter_bytes == 24);
    CHECK(s.parameter_number == 1);
    CHECK(s.parameter_from == *from);
    CHECK(std::equal(values.begin(), values.end(), s.parameters.begin()));
}

TEST_CASE("a read-only mapping is enough") {
    const std::string id = "snap-" + std::to_string(getpid());
    {
        shm::segment made = shm::segment::create(id);
        rig r(test::demo_plan(64, 32), &made.block());
        made.publish();
        r.sit_all();
        for (int k = 0; k < 4; ++k) r.turn();
        const shm::segment seen = shm::segment::observe(id);
        CHECK(read_snapshot(seen.block()).links[2].tail == 4);
    }
    shm::segment::remove(id);
}

TEST_CASE("a damaged block yields numbers, never an access out of range") {
    std::mt19937_64 random(20240611);
    const auto c = std::make_unique<shm::control_block>();
    rate_tracker tracker;
    event_tracker events;
    timeline bars;
    history past;
    for (int round = 0; round < 60; ++round) {
        auto* words = reinterpret_cast<u64*>(c.get());
        const std::size_t count = sizeof(shm::control_block) / 8;
        if (round % 3 == 0) {
            for (std::size_t k = 0; k < count; ++k) words[k] = random();
        } else if (round % 3 == 1) {
            std::memset(static_cast<void*>(c.get()), 0xFF, sizeof(shm::control_block));
        } else {
            std::memset(static_cast<void*>(c.get()), 0, sizeof(shm::control_block));
            rig whole(test::demo_plan(64, 32), c.get());
            for (int k = 0; k < 2000; ++k) words[random() % count] = random();
        }
        const snapshot s = read_snapshot(*c);
        REQUIRE(s.stages.size() <= shm::max_stages);
        for (const stage_view& v : s.stages) {
            CHECK(v.name.size() <= 48);
            CHECK(v.first_seat + v.seats <= s.seats.size());
            for (const u32 l : v.inputs) CHECK(l < s.links.size());
            for (const u32 l : v.outputs) CHECK(l < s.links.size());
        }
        for (const link_view& l : s.links) {
            CHECK(l.slots.size() <= shm::max_slots);
            CHECK((l.stage == shm::none || l.stage < s.stages.size()));
        }
        past.feed(s, tracker.feed(s));
        events.feed(s);
        bars.feed(s);
    }
}
