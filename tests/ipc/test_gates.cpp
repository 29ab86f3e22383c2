// The functions of a gate, each tested separately. For deaths in between see gate_history.cpp and
// model/gate_model.cpp.
#include "core/clock.hpp"
#include "ipc/gate.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;

TEST_CASE("a gate is closed once, by the first process, and the holder closes a gate one second late") {
    gate_row row{};
    gate& g = row.of[3];
    close_overdue(row, 10 * ns_per_s);
    CHECK(g.at.load() == 0);  // never opened
    const u32 first = open_gate(g, 5 * ns_per_s);
    CHECK(state_of(g.at.load()) == gate_state::pending);
    close_overdue(row, 6 * ns_per_s);
    CHECK(state_of(g.at.load()) == gate_state::pending);
    close_overdue(row, 6 * ns_per_s + 1);
    CHECK(g.at.load() == gate_word(first, gate_state::closed));
    CHECK_FALSE(close_gate(g, first, gate_state::granted));
    const u32 second = open_gate(g, ~u64{0});
    CHECK(second == first + 1);
    CHECK_FALSE(close_gate(g, first, gate_state::granted));
    close_overdue(row, 100 * ns_per_s);
    CHECK(close_gate(g, second, gate_state::granted));
    CHECK(g.at.load() == gate_word(second, gate_state::granted));
}

TEST_CASE("a wait that is no longer polled is closed, not granted, and its permit is returned") {
    test::zeroed<semaphore_block> b(semaphore_block::bytes(1));
    b->make(1);
    const semaphore line(*b, 7);
    gate g{};
    gate_wait first;
    first.gate = &g;
    open(first);
    CHECK(g.deadline_ns.load() == no_deadline_ns);
    request_permit(first, 5 * ns_per_s);
    CHECK(g.deadline_ns.load() == 5 * ns_per_s);
    drop(first, line);
    CHECK(state_of(first) == gate_state::pending);
    decide(first, line, semaphore(*b, 7).try_acquire());
    CHECK(state_of(first) == gate_state::closed);
    CHECK(line.free_permits() == 1);
    gate_wait second;
    second.gate = &g;
    open(second);
    CHECK(state_of(first) == gate_state::closed);  // the gate is another wait's
    decide(second, line, semaphore(*b, 7).try_acquire());
    CHECK(state_of(second) == gate_state::granted);
    CHECK(line.free_permits() == 0);
    drop(second, line);
    CHECK(line.free_permits() == 1);
}

TEST_CASE("a permit that arrives after the holder's closing is returned at once") {
    test::zeroed<semaphore_block> b(semaphore_block::bytes(1));
    b->make(1);
    const semaphore line(*b, 7);
    gate_row row{};
    gate_wait w;
    w.gate = &row.of[0];
    open(w);
    close_overdue(row, ~u64{0} - 1);
    CHECK(state_of(w) == gate_state::pending);  // the stream is not there: no timeout expires
    request_permit(w, ns_per_s);
    close_overdue(row, 3 * ns_per_s);
    CHECK(state_of(w) == gate_state::closed);
    decide(w, line, semaphore(*b, 7).try_acquire());
    CHECK(state_of(w) == gate_state::closed);
    CHECK(line.free_permits() == 1);
}
