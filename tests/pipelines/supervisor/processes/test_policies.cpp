// The policies that observe and decide: standbys, MPS domains, takeover. Nothing here touches a process.
#include <csignal>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "ring/participants.hpp"
#include "supervisor/policy/mps_policy.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/standby.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

standby_view wanting() {
    standby_view v;
    v.configured = v.wanted_now = v.due = v.holder_there = v.holder_ready = true;
    v.seat = seat_state::running;
    v.start_timeout_ns = ns_per_s;
    return v;
}

client_view client() {
    client_view v;
    v.client = true;
    return v;
}

death exited(int code, bool ready) {
    death d;
    d.known = true;
    d.exit_code = code;
    d.was_ready = ready;
    return d;
}

}  // namespace

TEST_CASE("a standby is started only after an owner that works") {
    CHECK(care_for(wanting()) == standby_care::start);
    const auto unless = [](auto&& change) {
        standby_view v = wanting();
        change(v);
        return care_for(v);
    };
    CHECK(unless([](auto& v) { v.configured = false; }) == standby_care::none);
    CHECK(unless([](auto& v) { v.wanted_now = false; }) == standby_care::none);
    CHECK(unless([](auto& v) { v.due = false; }) == standby_care::none);
    CHECK(unless([](auto& v) { v.holder_there = false; }) == standby_care::none);
    CHECK(unless([](auto& v) { v.holder_ready = false; }) == standby_care::none);
    for (const auto s : {seat_state::stopping, seat_state::stopped, seat_state::backoff, seat_state::failed,
                         seat_state::down, seat_state::done})
        CHECK(unless([&](auto& v) { v.seat = s; }) == standby_care::none);
    SECTION("beside one that is still starting only when others before it have worked") {
        CHECK(unless([](auto& v) { v.seat = seat_state::starting; }) == standby_care::none);
        CHECK(unless([](auto& v) { v.seat = seat_state::starting, v.restarts = 1; }) == standby_care::start);
        CHECK(unless([](auto& v) { v.seat = seat_state::starting, v.restarts = 1, v.fresh_deaths = 1; }) ==
              standby_care::none);
    }
}

TEST_CASE("a standby that does not become ready is ended, once") {
    standby_view v = wanting();
    v.there = true;
    v.age_ns = ns_per_s;
    CHECK(care_for(v) == standby_care::none);
    v.age_ns = ns_per_s + 1;
    CHECK(care_for(v) == standby_care::end_late);
    SECTION("it was told already") { v.kill_sent = true; }
    SECTION("it is ready") { v.standing_by = true; }
    if (v.kill_sent || v.standing_by) CHECK(care_for(v) == standby_care::none);
}

TEST_CASE("a standby follows only an owner that has delivered, and the reason why not is known") {
    succession_view v;
    v.configured = v.holder_running = v.holder_delivered = v.there = v.standing_by = true;
    CHECK(choose_succession(v) == succession::standby);
    v.holder_delivered = false;
    CHECK(choose_succession(v) == succession::untried);
    v.holder_delivered = true;
    v.holder_running = false;
    CHECK(choose_succession(v) == succession::untried);
    v.standing_by = false;
    CHECK(choose_succession(v) == succession::starting);
    v.there = false;
    CHECK(choose_succession(v) == succession::none);
    v.configured = false;
    CHECK(choose_succession(v) == succession::fresh);
}

TEST_CASE("a client's death ends its domain unless requested, bounded, or the domain is unneeded") {
    CHECK(breaks_domain(client()));
    client_view v = client();
    SECTION("no client") { v.client = false; }
    SECTION("terminate_client has ended its work") { v.terminated = true; }
    SECTION("we mean to end it") { v.by_supervisor = true; }
    SECTION("every frame is through its stage") { v.through = true; }
    SECTION("the run ends") { v.run_ends = true; }
    SECTION("the run is rebuilt") { v.rebuilding = true; }
    CHECK(breaks_domain(v) ==
          (v.client && !v.terminated && !v.by_supervisor && !v.through && !v.run_ends && !v.rebuilding));
    SECTION("it was quicker than the one who meant to end it") {
        v.by_supervisor = v.ended = true;
        CHECK(breaks_domain(v));
    }
}

TEST_CASE("a client's device is quiet once its work ended, its domain is over, or no write is left") {
    CHECK_FALSE(device_is_quiet(client()));
    client_view v = client();
    SECTION("its domain is over") { v.client = false; }
    SECTION("its work was ended") { v.terminated = true; }
    SECTION("every frame is through its stage") { v.through = true; }
    SECTION("the run ends") { v.run_ends = true; }
    SECTION("all processes end for a rebuild") { v.rebuilding = true; }
    if (!v.client || v.terminated || v.through || v.run_ends || v.rebuilding) CHECK(device_is_quiet(v));
}

TEST_CASE("a rebuild waits for the end of an MPS server that is being ended already") {
    client_view v = client();
    v.rebuilding = v.domain_ends = true;
    CHECK_FALSE(device_is_quiet(v));
    v.client = false;  // the server has ended
    CHECK(device_is_quiet(v));
}

TEST_CASE("no stage is blamed for a fault that reaches all clients or an end by its domain") {
    CHECK(excuse_for(exited(exit_code::gpu_fault, true), false, false) == excuse::device);
    CHECK(excuse_for(exited(exit_code::no_device, false), false, false) == excuse::device);
    CHECK(excuse_for(exited(exit_code::no_device, true), false, false) == excuse::none);  // it had a device
    CHECK(excuse_for(exited(3, true), false, false) == excuse::none);
    CHECK(excuse_for(exited(3, true), true, false) == excuse::domain);
    CHECK(excuse_for(exited(3, true), true, true) == excuse::none);  // it has broken it
    death late = exited(exit_code::gpu_fault, true);
    late.deadline = true;
    CHECK(excuse_for(late, true, false) == excuse::none);
}

TEST_CASE("a note describes a stage's own death unless it names a shared fault or a signal") {
    CHECK(died_by_itself(ring::note_signal(SIGSEGV)));
    CHECK(died_by_itself(ring::note_exit(99)));
    CHECK_FALSE(died_by_itself(ring::note_exit(exit_code::gpu_fault)));
    CHECK_FALSE(died_by_itself(ring::note_exit(exit_code::no_device)));
    CHECK_FALSE(died_by_itself(ring::note_signal_from_outside(SIGTERM)));
    CHECK_FALSE(died_by_itself(0));
}

TEST_CASE("after three faults in a row without progress of a frame, the domain is abandoned") {
    fault_row f;
    CHECK_FALSE(f.add(7));
    CHECK_FALSE(f.add(7));
    CHECK(f.add(7));
    CHECK_FALSE(f.add(8));
    CHECK(f.in_row == 1);
}

TEST_CASE("a second supervisor distinguishes entries by their word and by the seat's reference") {
    using ring::entry_state;
    const auto is = [](entry_state s, bool named, bool reusable) {
        return what_is(ring::entry_word{7, 1, 0, s}, named, reusable);
    };
    for (const bool named : {false, true}) {
        CHECK(is(entry_state::unused, named, false) == found_entry::unowned);
        CHECK(is(entry_state::standby, named, false) == found_entry::standby);
    }
    for (const auto s :
         {entry_state::starting, entry_state::live, entry_state::doomed, entry_state::fenced}) {
        CHECK(is(s, true, true) == found_entry::current);
        CHECK(is(s, false, false) == found_entry::retiring);
    }
    CHECK(is(entry_state::fenced, false, true) == found_entry::unowned);
    CHECK(is(entry_state::doomed, false, true) == found_entry::retiring);
}

TEST_CASE("a seat without a process gets a successor unless it rests or a death has yet to be judged") {
    for (const auto s : {seat_state::starting, seat_state::running, seat_state::stopped}) {
        CHECK_FALSE(rests(s));
        CHECK(successor_is_wanted({s, false}));
        CHECK_FALSE(successor_is_wanted({s, true}));
    }
    for (const auto s : {seat_state::stopping, seat_state::backoff, seat_state::failed, seat_state::down,
                         seat_state::done}) {
        CHECK(rests(s));
        CHECK_FALSE(successor_is_wanted({s, false}));
    }
}

TEST_CASE("suspects of an MPS domain's faults are tried one by one until one dies or all passed") {
    mps_trial t;
    t.begin({});
    CHECK_FALSE(t.in_progress());
    t.begin({3, 0, 2});
    CHECK(t.is_alone(3));
    CHECK_FALSE(t.is_alone(0));
    t.acquit();
    CHECK(t.is_alone(0));
    CHECK_FALSE(t.is_alone(3));
    SECTION("the second dies alone") {
        t.blame();
        CHECK_FALSE(t.in_progress());
        CHECK(t.is_blamed(0));
        CHECK(t.is_alone(0));
        CHECK_FALSE(t.is_alone(2));
        t.begin({2});
        t.acquit();
        CHECK(t.is_alone(0));  // for the rest of the run
    }
    SECTION("nobody does") {
        t.acquit();
        t.acquit();
        CHECK_FALSE(t.in_progress());
        CHECK(t.blamed.empty());
        for (const u32 stage : {0U, 2U, 3U}) CHECK_FALSE(t.is_alone(stage));
    }
}
