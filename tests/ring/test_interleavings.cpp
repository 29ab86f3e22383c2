// Between a worker's read of a lease word and its CAS another process is first, or the word has changed. A
// hook at the crash points between the two makes the change.
#include "core/crash_point.hpp"
#include "ring/blame.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

/// Calls `what` the first time that this thread passes `point`.
struct between_steps {
    template <typename F>
    between_steps(crash_point point, F what) {
        set_crash_hook([point, what, done = false](crash_point now) mutable {
            if (now != point || done) return;
            done = true;
            what();
        });
    }
    ~between_steps() { set_crash_hook({}); }
    between_steps(const between_steps&) = delete;
    between_steps& operator=(const between_steps&) = delete;
};

plan two_of_each() {
    plan p = chain_of_three();
    p.stages[0].instances = p.stages[1].instances = 2;
    return p;
}

}  // namespace

TEST_CASE("a source's number belongs only to the instance that leases it first") {
    bench b(two_of_each());
    const seated slow = b.sit(0), fast = b.sit(1);
    job late, first;
    {
        const between_steps other(crash_point::job_opened,
                                  [&] { REQUIRE(fast.w->begin(first, 0) == outcome::ok); });
        REQUIRE(slow.w->begin(late, 0) == outcome::ok);
    }
    CHECK(first.ring_sequence == 0);
    CHECK(late.ring_sequence == 1);
    const lease_word w = lease_word::of(load(b.c->source[0].sequence_lease[0]));
    CHECK(w.state == lease_state::leased);
    CHECK(w.job == first.index);
}

TEST_CASE("an input belongs only to the instance that leases it first") {
    bench b(two_of_each());
    const seated source = b.sit(0), slow = b.sit(2), fast = b.sit(3);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w, 0) == n);
    job late, first;
    {
        const between_steps other(crash_point::job_opened,
                                  [&] { REQUIRE(fast.w->begin(first, 0) == outcome::ok); });
        REQUIRE(slow.w->begin(late, 0) == outcome::ok);
    }
    CHECK(first.ring_sequence == 0);
    CHECK(late.ring_sequence == 1);
    const lease_word w = b.lease(0, first.input[0].index, b.c->stage[1].input_group[0]);
    CHECK(w.state == lease_state::leased);
    CHECK(w.job == first.index);
}

TEST_CASE("an input that was done between the choice and the lease is not leased again") {
    bench b(two_of_each());
    const seated source = b.sit(0), slow = b.sit(2), fast = b.sit(3), sink = b.sit(4);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w, 0) == n);
    job late;
    {
        const between_steps other(crash_point::job_opened, [&] { CHECK(pass(*fast.w) == 0); });
        REQUIRE(slow.w->begin(late, 0) == outcome::ok);
    }
    CHECK(late.ring_sequence == 1);
    CHECK(pass(*sink.w) == 0);
}

TEST_CASE("a join that gives an input back before its work keeps the attempts that the word has") {
    bench b(fork_and_join());
    const seated source = b.sit(0), dies = b.sit(1);
    CHECK(pass(*source.w) == 0);
    job j;
    REQUIRE(dies.w->begin(j, 0) == outcome::ok);
    const seated join = b.die(dies, blame::own, 1);
    const u32 group[2] = {b.c->stage[1].input_group[0], b.c->stage[1].input_group[1]};
    const u32 slot[2] = {j.input[0].index, j.input[1].index};
    const u32 attempts = b.lease(0, slot[0], group[0]).attempts;
    REQUIRE(attempts != 0);
    {
        // The second input's word changes after the first input is leased: a late verdict on the frame.
        const between_steps other(crash_point::input_leased, [&] {
            shm::word& at = b.c->link[1].group[slot[1]][group[1]];
            lease_word w = lease_word::of(load(at));
            REQUIRE(w.state == lease_state::wait);
            w.attempts = 0;
            at.store(w.pack());
        });
        REQUIRE(join.w->begin(j, 0) == outcome::ok);
    }
    CHECK(b.lease(0, slot[0], group[0]).attempts == attempts);
}
