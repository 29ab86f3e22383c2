// Histories of one seat: events in, states and actions out.
#include <csignal>

#include "core/resource_limit.hpp"
#include "supervisor/policy/state_table.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;
using S = seat_state;
using E = seat_event;
using A = seat_action;

struct step {
    E event;
    S state;
    A action;
};

/// Plays a history and checks every step.
void play(const std::vector<step>& history) {
    seat_machine m;
    u64 now = 1;
    for (std::size_t k = 0; k < history.size(); ++k) {
        CAPTURE(k, name_of(m.state()));
        CHECK(m.on(history[k].event, ++now) == history[k].action);
        CHECK(m.state() == history[k].state);
    }
}

death exited(int code, u64 commits, bool ready = true) {
    death d;
    d.known = true;
    d.exit_code = code;
    d.commits = commits;
    d.was_ready = ready;
    return d;
}
death gave_back(bool may) {
    death d = exited(exit_code::gave_back, 0);
    d.may_give_back = may;
    return d;
}
death signalled(int signal, u64 commits) {
    death d;
    d.known = true;
    d.signal = signal;
    d.commits = commits;
    return d;
}

}  // namespace

TEST_CASE("a stage starts, runs and exits after the last frame") {
    play({{E::bring_up, S::starting, A::start},
          {E::ready, S::running, A::none},
          {E::finished, S::done, A::none}});
}

TEST_CASE("a kill from outside starts the successor at once, in any state that has a process") {
    play({{E::bring_up, S::starting, A::start},
          {E::died_outside, S::starting, A::start},
          {E::ready, S::running, A::none},
          {E::died_outside, S::starting, A::start},
          {E::ready, S::running, A::none},
          {E::pause, S::stopped, A::suspend},
          {E::died_outside, S::starting, A::start}});
}

TEST_CASE("processes that commit nothing restart ever later, and the fifth in a row is the last") {
    seat_machine m;
    m.on(E::bring_up, 1);
    u64 expected = first_delay_ns;
    for (u32 k = 1; k < max_fresh_deaths; ++k) {
        CHECK(m.on(E::died_fresh, k) == A::delay);
        CHECK(m.state() == S::backoff);
        CHECK(m.delay_ns() == expected);
        expected *= 2;
        CHECK(m.on(E::due, k) == A::start);
        CHECK(m.state() == S::starting);
    }
    CHECK(m.on(E::died_fresh, 9) == A::fail);
    CHECK(m.state() == S::failed);
}

TEST_CASE("crashes by unauthenticated peers never fail a seat but increase its delay") {
    death shot = signalled(SIGABRT, 0);
    shot.exposed = true;
    REQUIRE(classify(shot, restart_policy::always) == E::died_exposed);
    shot.signal = 0, shot.exit_code = exit_code::stage_exception, shot.was_ready = true;
    CHECK(classify(shot, restart_policy::always) == E::died_fresh);  // a fault that it reports itself is its
                                                                     // own
    CHECK(classify(signalled(SIGABRT, 0), restart_policy::always) == E::died_fresh);
    seat_machine m;
    m.on(E::bring_up, 1);
    for (u32 k = 1; k < 100; ++k) {
        CHECK(m.on(E::died_exposed, k) == A::delay);
        CHECK(m.delay_ns() <= longest_delay_ns);
        CHECK(m.on(E::due, k) == A::start);
    }
    CHECK(m.delay_ns() == longest_delay_ns);
}

TEST_CASE("a program that refuses its start fails the seat, one that worked before is retried") {
    const death refuses = exited(exit_code::usage, 0, false);
    REQUIRE(classify(refuses, restart_policy::always) == E::died_refusing);
    seat_machine m;
    m.on(E::bring_up, 1);
    const bool by_another_supervisor = GENERATE(false, true);
    if (by_another_supervisor)
        m.resume(S::starting, 1, 0, true);
    else
        m.on(E::ready, 1);
    CHECK(m.proven());
    for (u32 k = 1; k < max_fresh_deaths; ++k) {
        CHECK(m.on(E::died_refusing, k) == A::delay);
        CHECK(m.on(E::due, k) == A::start);
    }
    CHECK(m.on(E::died_refusing, 9) == A::fail);
    seat_machine fresh;
    fresh.on(E::bring_up, 1);
    CHECK(fresh.on(E::died_refusing, 2) == A::fail);
}

TEST_CASE("a life that commits a frame breaks the row of those that don't") {
    seat_machine m;
    const bool by_its_death = GENERATE(false, true);  // reported when it commits, or when it dies
    m.on(E::bring_up, 1);
    for (int k = 0; k < 20; ++k) {
        CHECK(m.on(E::died_fresh, 2) == A::delay);
        m.on(E::due, 3);
        if (k % 3 != 2) continue;
        if (by_its_death)
            CHECK(m.on(E::died_spent, 4) == A::start);
        else
            m.note_commit();
    }
    CHECK(m.state() == S::starting);
}

TEST_CASE("kills from outside don't shorten the row either way") {
    seat_machine m;
    m.on(E::bring_up, 1);
    for (int k = 0; k < 4; ++k) {
        CHECK(m.on(E::died_fresh, 2) == A::delay);
        m.on(E::due, 2);
        CHECK(m.on(E::died_outside, 2) == A::start);
    }
    CHECK(m.on(E::died_fresh, 2) == A::fail);
}

TEST_CASE("stop holds, cont releases") {
    play({{E::bring_up, S::starting, A::start},
          {E::ready, S::running, A::none},
          {E::pause, S::stopped, A::suspend},
          {E::pause, S::stopped, A::none},
          {E::resume, S::running, A::resume},
          {E::resume, S::running, A::resume},
          {E::bring_up, S::running, A::none}});
}

TEST_CASE("a pause outlasts the process's death: the successor is paused until cont") {
    for (const E how : {E::died_outside, E::died_spent})
        play({{E::bring_up, S::starting, A::start},
              {E::ready, S::running, A::none},
              {E::pause, S::stopped, A::suspend},
              {how, S::starting, A::start},
              {E::ready, S::stopped, A::suspend},
              {how, S::starting, A::start},
              {E::resume, S::starting, A::none},
              {E::ready, S::running, A::none}});
    play({{E::bring_up, S::starting, A::start},
          {E::pause, S::stopped, A::suspend},
          {E::died_fresh, S::backoff, A::delay},
          {E::due, S::starting, A::start},
          {E::ready, S::stopped, A::suspend},
          {E::resume, S::running, A::resume}});
    for (const E end : {E::take_down, E::died_for_good})  // a fresh start by the user is not paused
        play({{E::bring_up, S::starting, A::start},
              {E::pause, S::stopped, A::suspend},
              {end, end == E::take_down ? S::stopping : S::failed, end == E::take_down ? A::end : A::fail},
              {E::died_outside, end == E::take_down ? S::down : S::failed,
               end == E::take_down ? A::none : A::refuse},
              {E::bring_up, S::starting, A::start},
              {E::ready, S::running, A::none}});
}

TEST_CASE("another supervisor keeps a pause, also of a process that died meanwhile") {
    seat_machine m;
    m.restore_paused(true);
    m.resume(S::stopped, 1, 0);
    CHECK(m.on(E::died_outside, 2) == A::start);
    CHECK(m.paused());
    CHECK(m.on(E::ready, 3) == A::suspend);
    CHECK(m.state() == S::stopped);
    CHECK(m.on(E::resume, 4) == A::resume);
    CHECK_FALSE(m.paused());
}

TEST_CASE("down lasts until up, for any cause of the process's death") {
    for (const E how : {E::died_outside, E::died_fresh, E::died_spent, E::died_for_good})
        play({{E::bring_up, S::starting, A::start},
              {E::ready, S::running, A::none},
              {E::take_down, S::stopping, A::end},
              {how, S::down, A::none},
              {E::take_down, S::down, A::none},
              {E::resume, S::down, A::refuse},
              {E::pause, S::down, A::refuse},
              {E::bring_up, S::starting, A::start}});
}

TEST_CASE("a seat in backoff can be taken down or started at once, a failed one restored") {
    play({{E::bring_up, S::starting, A::start},
          {E::died_fresh, S::backoff, A::delay},
          {E::take_down, S::down, A::none}});
    play({{E::bring_up, S::starting, A::start},
          {E::died_fresh, S::backoff, A::delay},
          {E::bring_up, S::starting, A::start}});
    play({{E::bring_up, S::starting, A::start},
          {E::died_for_good, S::failed, A::fail},
          {E::pause, S::failed, A::refuse},
          {E::bring_up, S::starting, A::start}});
}

TEST_CASE("a stage started by hand takes a seat that is down or failed") {
    play({{E::spawned, S::starting, A::none}, {E::ready, S::running, A::none}});
    play({{E::bring_up, S::starting, A::start},
          {E::ready, S::running, A::none},
          {E::spawned, S::running, A::refuse}});
}

TEST_CASE("a death is from outside or by its own hand") {
    for (const int s : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGSTOP})
        CHECK_FALSE(self_inflicted(signalled(s, 0)));
    for (const int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) CHECK(self_inflicted(signalled(s, 0)));
    CHECK(self_inflicted(exited(3, 0)));
    CHECK(self_inflicted(exited(0, 0)));           // before the end of the run
    CHECK_FALSE(self_inflicted(gave_back(true)));  // for others of its kind
    CHECK(self_inflicted(gave_back(false)));       // there are none on another host
    CHECK_FALSE(self_inflicted(death{}));          // unknown: innocent unless the exit status shows otherwise
    death late;
    late.deadline = true;
    CHECK(self_inflicted(late));
    death restart_requested = signalled(SIGSEGV, 0);
    restart_requested.outside = true;  // `carousel kill --signal SEGV`
    CHECK_FALSE(self_inflicted(restart_requested));
}

TEST_CASE("the policy classifies a death for the table") {
    using P = restart_policy;
    CHECK(classify(signalled(SIGKILL, 0), P::always) == E::died_outside);
    CHECK(classify(signalled(SIGSEGV, 0), P::always) == E::died_fresh);
    CHECK(classify(signalled(SIGSEGV, 5), P::always) == E::died_spent);
    CHECK(classify(exited(73, 0), P::always) == E::died_fresh);
    CHECK(classify(gave_back(true), P::always) == E::died_outside);
    CHECK(classify(gave_back(false), P::always) == E::died_fresh);
    CHECK(classify(exited(0, 3), P::always) == E::died_spent);
    CHECK(classify(exited(0, 3), P::on_failure) == E::died_for_good);
    CHECK(classify(exited(1, 3), P::on_failure) == E::died_spent);
    CHECK(classify(signalled(SIGKILL, 3), P::on_failure) == E::died_outside);
    CHECK(classify(signalled(SIGKILL, 3), P::no) == E::died_for_good);
    CHECK(classify(exited(exit_code::usage, 0, false), P::always) == E::died_refusing);
    CHECK(classify(exited(exit_code::no_device, 0, false), P::always) == E::died_for_good);
    CHECK(classify(exited(exit_code::usage, 0, true), P::always) == E::died_fresh);  // not at its start
    death through = exited(0, 9);
    through.through = true;
    CHECK(classify(through, P::no) == E::finished);
    death restart_requested = signalled(SIGKILL, 0);
    restart_requested.outside = restart_requested.restart_requested = true;
    CHECK(classify(restart_requested, P::no) == E::died_outside);
}

TEST_CASE("a process that could not start a thread does not count as an attempt, under any policy") {
    using P = restart_policy;
    death refused = exited(exit_code::no_resources, 0, false);
    CHECK(lacked_resources(refused));
    CHECK_FALSE(self_inflicted(refused));
    CHECK(classify(refused, P::always) == E::died_outside);
    CHECK(classify(refused, P::no) == E::died_outside);
    CHECK(describe(refused) == "exit code 77 (no resources)");
    refused.was_ready = true;  // such an exit of a stage that runs is its own
    CHECK_FALSE(lacked_resources(refused));
    CHECK(classify(refused, P::always) == E::died_fresh);
    CHECK_FALSE(lacked_resources(signalled(SIGKILL, 0)));
}

TEST_CASE("deaths are described in words") {
    CHECK(describe(exited(3, 0)) == "exit code 3");
    death no_memory = signalled(SIGKILL, 0);
    no_memory.out_of_memory = true;
    CHECK(describe(no_memory) == "signal 9 (SIGKILL) of the kernel's out-of-memory killer");
    CHECK(describe(gave_back(true)) == "exit code 76 (returned its frames)");
    CHECK(describe(gave_back(false)) == "exit code 76");
    CHECK(describe(signalled(SIGSEGV, 0)) == "signal 11 (SIGSEGV)");
    death late;
    late.deadline = true;
    CHECK(describe(late) == "not ready in time");
    late.was_ready = true;
    CHECK(describe(late) == "deadline missed");
    CHECK(describe(death{}) == "unknown");
}
