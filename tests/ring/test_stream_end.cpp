// A source that ends its stream: its claim, END, and what is undone, step by step.

#include "ring/stream_end.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

/// source -> sink; the source may end its stream.
plan ending_chain(u32 instances = 1) {
    plan p = chain();
    p.stages[0].ends = true;
    p.stages[0].instances = instances;
    return p;
}

/// The next frame of the source is the one after the end of its stream.
job at_its_end(const seated& source, u32 in_flight = 0) {
    job j;
    REQUIRE(source.w->begin(j, in_flight) == outcome::ok);
    REQUIRE(source.w->end_stream(j) == outcome::empty);
    return j;
}

/// The supervisor's actions in one check.
bool apply_stream_end(const bench& b) {
    const auto found = claimed_end(*b.c);
    return found && lower_end(*b.c, found->ring_sequence);
}

}  // namespace

TEST_CASE("a stream ends before the claimed frame, whose slot, number and job word are returned") {
    bench b(ending_chain());
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    const job j = at_its_end(source);
    CHECK(b.c->end.load() == end_unknown);
    CHECK(apply_stream_end(b));
    CHECK(b.c->end.load() == 2);
    CHECK_FALSE(apply_stream_end(b));
    REQUIRE(source.w->end_stream(j) == outcome::ok);
    REQUIRE(source.w->give_back(j));
    CHECK(b.slot(0, j.output[0].index).state == slot_state::free);
    CHECK(b.job(j.index) == job_word{j.version + 1, source.incarnation.epoch, job_state::idle});
    const lease_word number = lease_word::of(load(b.c->source[0].sequence_lease[j.sequence_index]));
    CHECK(number == lease_word{lap_of(b.c->source[0], 2, b.c->link[0].window), 0, 0, 0, lease_state::wait});
    CHECK_FALSE(claimed_end(*b.c));
    job none;
    CHECK(source.w->begin(none, 0) == outcome::full);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*sink.w) == n);
    CHECK(source.w->begin(none, 0) == outcome::closed);
    CHECK(sink.w->begin(none, 0) == outcome::closed);
    CHECK(all_delivered(*b.c));
}

TEST_CASE("an empty stream ends before frame 0") {
    bench b(ending_chain());
    const seated source = b.sit(0), sink = b.sit(1);
    const job j = at_its_end(source);
    CHECK(apply_stream_end(b));
    CHECK(b.c->end.load() == 0);
    REQUIRE(source.w->give_back(j));
    job none;
    CHECK(sink.w->begin(none, 0) == outcome::closed);
    CHECK(source.w->begin(none, 0) == outcome::closed);
    CHECK(all_delivered(*b.c));
}

TEST_CASE("a claim lowers an END that is STOPPING or higher, and does not change a lower END") {
    plan p = ending_chain();
    SECTION("STOPPING, which the source can't acknowledge any more") {
        bench b(p);
        const seated source = b.sit(0);
        CHECK(pass(*source.w) == 0);
        const job j = at_its_end(source);
        begin_stop(*b.c);
        CHECK_FALSE(try_finish_stop(*b.c));
        CHECK(apply_stream_end(b));
        CHECK(b.c->end.load() == 1);
        CHECK(try_finish_stop(*b.c));
        CHECK(b.c->end.load() == 1);
        CHECK(source.w->end_stream(j) == outcome::ok);
    }
    SECTION("more frames were asked for") {
        p.end = 1000;
        bench b(p);
        const seated source = b.sit(0);
        (void)at_its_end(source);
        CHECK(apply_stream_end(b));
        CHECK(b.c->end.load() == 0);
    }
    SECTION("END is known to be lower") {
        bench b(p);
        const seated source = b.sit(0);
        for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
        (void)at_its_end(source);
        b.c->end.store(2);
        CHECK_FALSE(apply_stream_end(b));
        CHECK(b.c->end.load() == 2);
    }
}

TEST_CASE("of two instances at the end the lower frame counts, in any order") {
    bench b(ending_chain(2));
    const seated one = b.sit(0), two = b.sit(1);
    job first, second;
    REQUIRE(one.w->begin(first, 0) == outcome::ok);
    REQUIRE(two.w->begin(second, 0) == outcome::ok);
    REQUIRE(second.ring_sequence == 1);
    SECTION("the higher frame's") {
        CHECK(two.w->end_stream(second) == outcome::empty);
        CHECK(apply_stream_end(b));
        CHECK(b.c->end.load() == 1);
        CHECK(one.w->end_stream(first) == outcome::empty);
        CHECK(two.w->end_stream(second) == outcome::ok);
    }
    SECTION("the lower frame's") {
        CHECK(one.w->end_stream(first) == outcome::empty);
        CHECK(two.w->end_stream(second) == outcome::empty);
        CHECK(end_claim::of(b.c->source[0].ended.load()).ring_sequence == 0);
    }
    (void)apply_stream_end(b);
    CHECK(b.c->end.load() == 0);
    CHECK(one.w->end_stream(first) == outcome::ok);
    CHECK(two.w->end_stream(second) == outcome::ok);
}

TEST_CASE("the claim of a revoked source is not trusted, and its successor repeats it") {
    bench b(ending_chain());
    seated source = b.sit(0);
    CHECK(pass(*source.w) == 0);
    const job j = at_its_end(source);
    const seated old{source.incarnation,
                     std::make_unique<worker>(*b.c, source.incarnation.seat, source.incarnation.entry,
                                              source.incarnation.epoch)};
    source = b.die(source, blame::none, 1);
    CHECK_FALSE(claimed_end(*b.c));
    CHECK(old.w->end_stream(j) == outcome::revoked);
    CHECK_FALSE(old.w->give_back(j));
    const job again = at_its_end(source);
    CHECK(again.ring_sequence == 1);
    CHECK(apply_stream_end(b));
    CHECK(b.c->end.load() == 1);
}

TEST_CASE("a dead source's claim for a given-up frame yields to its successor's") {
    plan p = ending_chain();
    p.stages[0].max_attempts = 1;
    bench b(p);
    seated source = b.sit(0);
    (void)at_its_end(source);
    source = b.die(source, blame::own, 1);
    job abandoned;
    REQUIRE(source.w->begin(abandoned, 0) == outcome::ok);
    REQUIRE(abandoned.tombstone_stage == 0);
    REQUIRE(source.w->submit(abandoned));
    REQUIRE(source.w->commit(abandoned));
    REQUIRE(source.w->complete(abandoned));
    CHECK_FALSE(claimed_end(*b.c));
    (void)at_its_end(source);
    CHECK(apply_stream_end(b));
    CHECK(b.c->end.load() == 1);
}

TEST_CASE("an overwritten word ends no stream") {
    plan p = ending_chain();
    SECTION("the number waits") {
        bench b(p);
        const seated source = b.sit(0);
        job j;
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        b.c->source[0].ended.store(end_claim{1, j.index, static_cast<u32>(j.version)}.pack());
        CHECK_FALSE(claimed_end(*b.c));
    }
    SECTION("the number is leased to another job") {
        bench b(p);
        const seated source = b.sit(0);
        job j, other;
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        REQUIRE(source.w->begin(other, 1) == outcome::ok);
        b.c->source[0].ended.store(end_claim{0, other.index, static_cast<u32>(other.version)}.pack());
        CHECK_FALSE(claimed_end(*b.c));
    }
    SECTION("the frame is submitted") {
        bench b(p);
        const seated source = b.sit(0);
        job j;
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        REQUIRE(source.w->submit(j));
        b.c->source[0].ended.store(end_claim{0, j.index, static_cast<u32>(j.version)}.pack());
        CHECK_FALSE(claimed_end(*b.c));
    }
    SECTION("the source never ends its stream") {
        p.stages[0].ends = false;
        bench b(p);
        const seated source = b.sit(0);
        (void)at_its_end(source);
        CHECK_FALSE(claimed_end(*b.c));
    }
}

TEST_CASE("a reader begins no frame of another source that lies beyond END") {
    plan p;
    p.stages = {{"left", {}, true}, {"right", {}, true}, {"middle", {1}, true}, {"join", {0, 2}, false}};
    p.stages[0].ends = true;
    bench b(p);
    const seated left = b.sit(0), right = b.sit(1), middle = b.sit(2), join = b.sit(3);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*left.w) == n);
    for (u64 n = 0; n < 4; ++n) CHECK(pass(*right.w) == n);
    const job j = at_its_end(left);
    CHECK(apply_stream_end(b));
    REQUIRE(left.w->give_back(j));
    job first, second, beyond;
    REQUIRE(middle.w->begin(first, 0) == outcome::ok);
    REQUIRE(middle.w->begin(second, 1) == outcome::ok);
    CHECK(middle.w->begin(beyond, 2) == outcome::empty);
    for (const job* each : {&first, &second}) {
        job done = *each;
        REQUIRE(middle.w->submit(done));
        REQUIRE(middle.w->commit(done));
        REQUIRE(middle.w->complete(done));
    }
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*join.w) == n);
    for (const seated* s : {&left, &right, &middle, &join}) CHECK(s->w->begin(beyond, 0) == outcome::closed);
    CHECK(all_delivered(*b.c));
}
