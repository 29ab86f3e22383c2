// The primitives between processes, explored exhaustively in small set-ups.
//
// Modelled: every load and every CAS of a primitive's words as a separate step, so that a process may stop,
// die or lose its connection between any two; the registry's entries and the fence; new incarnations with
// their own epochs; the holder that repairs, and dies at any step of it. Hints are moved in the step whose
// read follows them.
//
// Safety, in every state: no permit is out twice, and no client is overtaken; no element is torn, delivered
// twice or out of its producer's order; no task is claimed or ended twice, or has a wrong count of attempts;
// no unit is in two blocks; kernels after a gate run only with a permit, all of them get the same answer, and
// no gate is closed before its time. In states in which all clients are idle: no permit, ticket, cell, place,
// unit or transferred block is lost, and each loss was counted once. Liveness, from every state: live clients
// finish after the death of any client, and at a semaphore also while any client is stopped.
//
// Left out: weak memory (ipc/words.hpp argues the orders); the wrap of counts, epochs and serials; time (a
// wait may time out at any moment); doorbells (a process that can make a step eventually makes it); what
// stops a queue: a producer that rests with a claimed cell, a consumer with a leased one.
#include "check.hpp"

using namespace carousel::ipc_model;

TEST_CASE("semaphore: permits, tickets and turns hold in every small set-up") {
    check(sound<semaphore_setup>());
}
TEST_CASE("semaphore: each omitted rule is detected by what it breaks") { check(seeded<semaphore_setup>()); }
TEST_CASE("gates: permits, results and kernels hold in every small set-up") { check(sound<gate_setup>()); }
TEST_CASE("gates: each omitted rule is detected by what it breaks") { check(seeded<gate_setup>()); }
TEST_CASE("repairers: a dead client's holdings are repaired and counted once under deaths and stops") {
    check(sound<repairer_setup>());
}
TEST_CASE("repairers: each omitted rule is detected by what it breaks") { check(seeded<repairer_setup>()); }
TEST_CASE("queue: elements, order, capacity and counts hold in every small set-up") {
    check(sound<queue_setup>());
}
TEST_CASE("queue: each omitted rule is detected by what it breaks") { check(seeded<queue_setup>()); }
TEST_CASE("work queue: tasks, attempts and dead letters hold in every small set-up") {
    check(sound<work_setup>());
}
TEST_CASE("work queue: each omitted rule is detected by what it breaks") { check(seeded<work_setup>()); }
TEST_CASE("pool: units, blocks and transfers hold in every small set-up") { check(sound<pool_setup>()); }
TEST_CASE("pool: each omitted rule is detected by what it breaks") { check(seeded<pool_setup>()); }

TEST_CASE("a search that would grow too large reports it") {
    const result r = explore(sound<queue_setup>().front().what, 1000);
    CHECK(r.broken == too_big);
    CHECK(r.states < 1100);
}
