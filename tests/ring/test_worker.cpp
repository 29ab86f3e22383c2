// The rules of choosing a frame, one at a time: windows, order, attempts, tombstone frames, joins.

#include "ring/blame.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

TEST_CASE("a source stops at the window until the sink has read, then continues by as much") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    const u32 window = b.c->link[0].window;
    for (u32 n = 0; n < window; ++n) CHECK(pass(*source.w) == n);
    job j;
    CHECK(source.w->begin(j, 0) == outcome::full);
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*source.w) == window);
    CHECK(source.w->begin(j, 0) == outcome::full);
}

TEST_CASE("a worker names the ring for which it waits") {
    bench b(chain_of_three());
    const seated source = b.sit(0), middle = b.sit(1);
    CHECK(middle.w->peek(0) == outcome::empty);
    CHECK(middle.w->blocking_link() == 0);
    for (u32 n = 0; n < b.c->link[1].window; ++n) CHECK(pass(*source.w) == n);
    for (u32 n = 0; n < b.c->link[1].window; ++n) CHECK(pass(*middle.w) == n);
    CHECK(middle.w->peek(0) == outcome::empty);
    CHECK(middle.w->blocking_link() == 0);
    (void)pass(*source.w);
    CHECK(middle.w->peek(0) == outcome::full);
    CHECK(middle.w->blocking_link() == 1);
}

TEST_CASE("a worker names no ring for a frame that is there") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    CHECK(sink.w->peek(0) == outcome::empty);
    CHECK(sink.w->blocking_link() == 0);
    (void)pass(*source.w);
    CHECK(sink.w->peek(0) == outcome::ok);  // it begins no frame if ready() returns false
    CHECK(sink.w->blocking_link() == shm::none);
    job j;
    REQUIRE(sink.w->begin(j, 0) == outcome::ok);
    doom(*b.c, sink.incarnation.entry);
    const seated successor = b.sit(1);
    CHECK(successor.w->peek(0) == outcome::empty);  // the lease is the predecessor's
    CHECK(successor.w->blocking_link() == shm::none);
}

TEST_CASE("a full ring of unmade frames is the stage's own work, of unread ones its readers'") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    const u32 window = b.c->link[0].window;
    std::vector<job> at_work(std::min(window, b.c->seat[0].jobs));
    for (u32 n = 0; n < at_work.size(); ++n) {
        REQUIRE(source.w->begin(at_work[n], n) == outcome::ok);
        REQUIRE(source.w->submit(at_work[n]));
    }
    job j;
    CHECK(source.w->begin(j, static_cast<u32>(at_work.size())) == outcome::own_work);
    // all but the oldest: the readers can't have any of them
    for (std::size_t n = 1; n < at_work.size(); ++n) {
        REQUIRE(source.w->commit(at_work[n]));
        REQUIRE(source.w->complete(at_work[n]));
    }
    for (u64 n = at_work.size(); n < window; ++n) CHECK(pass(*source.w, 1) == n);
    CHECK(source.w->begin(j, 1) == outcome::own_work);
    REQUIRE(source.w->commit(at_work[0]));
    REQUIRE(source.w->complete(at_work[0]));
    CHECK(source.w->begin(j, 0) == outcome::full);
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*source.w) == window);
}

TEST_CASE("a reader that has taken all that its ring can hold waits for itself, not for its producer") {
    plan p = chain();
    p.stages[0].window = 2;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    REQUIRE(b.c->link[0].window == 2);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    job j[3];
    REQUIRE(sink.w->begin(j[0], 0) == outcome::ok);
    CHECK(pass(*sink.w, 1) == 1);
    CHECK(sink.w->begin(j[2], 1) == outcome::own_work);  // frame 0 keeps the ring full
    CHECK(source.w->begin(j[1], 0) == outcome::full);
    REQUIRE(sink.w->submit(j[0]));
    REQUIRE(sink.w->commit(j[0]));
    REQUIRE(sink.w->complete(j[0]));
    CHECK(sink.w->begin(j[2], 0) == outcome::empty);
}

TEST_CASE("a process may keep a smaller window, change it at any time, and never to zero") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    REQUIRE(b.c->link[0].window > 3);
    job j;
    source.w->reach(2);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    CHECK(source.w->begin(j, 0) == outcome::full);
    source.w->reach(3);
    CHECK(pass(*source.w) == 2);
    CHECK(source.w->begin(j, 0) == outcome::full);
    source.w->reach(0);  // as 1
    CHECK(source.w->begin(j, 0) == outcome::full);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*sink.w) == n);
    CHECK(pass(*source.w) == 3);
    CHECK(source.w->begin(j, 0) == outcome::full);
    source.w->reach(1000);  // the ring's own window applies
    for (u64 n = 4; n < 3 + b.c->link[0].window; ++n) CHECK(pass(*source.w) == n);
    CHECK(source.w->begin(j, 0) == outcome::full);
}

TEST_CASE("a consumer waits for the next frame and never passes it over") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    job first, second;
    REQUIRE(source.w->begin(first, 0) == outcome::ok);
    REQUIRE(source.w->begin(second, 1) == outcome::ok);
    REQUIRE(source.w->submit(first));
    REQUIRE(source.w->submit(second));
    REQUIRE(source.w->commit(second));  // frame 1 is there before frame 0
    REQUIRE(source.w->complete(second));
    job j;
    CHECK(sink.w->begin(j, 0) == outcome::empty);
    REQUIRE(source.w->commit(first));
    REQUIRE(source.w->complete(first));
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*sink.w) == 1);
}

TEST_CASE("the run closes for everybody at its end") {
    plan p = chain();
    p.end = 3;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    job j;
    CHECK(source.w->begin(j, 0) == outcome::full);  // its frames may still have to be made again
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*sink.w) == n);
    CHECK(source.w->begin(j, 0) == outcome::closed);
    CHECK(sink.w->begin(j, 0) == outcome::closed);
    CHECK(all_delivered(*b.c));
}

TEST_CASE("a run that was to have many frames can be ended early, with every frame that was begun") {
    plan p = chain();
    p.end = 1'000'000;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 4; ++n) CHECK(pass(*source.w) == n);
    begin_stop(*b.c);
    CHECK_FALSE(try_finish_stop(*b.c));  // the source has not acknowledged
    job j;
    CHECK(source.w->begin(j, 0) == outcome::stopping);
    REQUIRE(try_finish_stop(*b.c));
    CHECK(b.c->end.load() == 4);
    begin_stop(*b.c);
    CHECK(b.c->end.load() == 4);
    for (u64 n = 0; n < 4; ++n) CHECK(pass(*sink.w) == n);
    CHECK(all_delivered(*b.c));
}

TEST_CASE("the end waits for the revocation of a source that is doomed") {
    bench b(chain());
    const seated old = b.sit(0);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*old.w) == n);
    begin_stop(*b.c);
    doom(*b.c, old.incarnation.entry);
    // the epoch is raised, the predecessor's words are not taken over yet
    const incarnation_id successor = appoint(*b.c, 0);
    REQUIRE(successor);
    CHECK_FALSE(try_finish_stop(*b.c));
    REQUIRE(revoke(*b.c, 0, old.incarnation.epoch));
    CHECK(try_finish_stop(*b.c));
    CHECK(b.c->end.load() == 3);
}

TEST_CASE("a frame that kills its stage while leased by itself becomes a tombstone after max_attempts") {
    plan p = chain();
    p.stages.push_back({"last", {1}, false});
    p.stages[1].has_output = true;
    bench b(p);
    const seated source = b.sit(0), last = b.sit(2);
    seated middle = b.sit(1);
    CHECK(pass(*source.w) == 0);
    for (int attempt = 0; attempt < 3; ++attempt) {
        job j;
        REQUIRE(middle.w->begin(j, 0) == outcome::ok);
        CHECK(j.tombstone_stage == shm::none);
        middle = b.die(middle, blame::own, 1);
    }
    job abandoned;
    REQUIRE(middle.w->begin(abandoned, 0) == outcome::ok);
    CHECK(abandoned.tombstone_stage == 1);
    REQUIRE(middle.w->submit(abandoned));
    REQUIRE(middle.w->commit(abandoned));
    REQUIRE(middle.w->complete(abandoned));
    job seen;
    REQUIRE(last.w->begin(seen, 0) == outcome::ok);
    CHECK(seen.ring_sequence == 0);
    CHECK(seen.tombstone_stage == 1);
}

TEST_CASE("kills from outside never count as attempts") {
    bench b(chain());
    const seated source = b.sit(0);
    seated sink = b.sit(1);
    CHECK(pass(*source.w) == 0);
    for (int k = 0; k < 20; ++k) {
        job j;
        REQUIRE(sink.w->begin(j, 0) == outcome::ok);
        REQUIRE(j.tombstone_stage == shm::none);
        sink = b.die(sink, blame::none, 1);
    }
    CHECK(pass(*sink.w) == 0);
}

TEST_CASE("after a death with several frames in flight they are leased one at a time, unblamed") {
    bench b(chain());
    const seated source = b.sit(0);
    seated sink = b.sit(1);
    for (u64 n = 0; n < 4; ++n) CHECK(pass(*source.w) == n);
    job a, c;
    REQUIRE(sink.w->begin(a, 0) == outcome::ok);
    REQUIRE(sink.w->begin(c, 1) == outcome::ok);
    sink = b.die(sink, blame::own, 2);
    job j, extra;
    REQUIRE(sink.w->begin(j, 0) == outcome::ok);
    CHECK(j.alone);
    CHECK(j.tombstone_stage == shm::none);
    CHECK(sink.w->begin(extra, 1) == outcome::own_work);  // frame 1 is a suspect too
    REQUIRE(sink.w->submit(j));
    REQUIRE(sink.w->commit(j));
    REQUIRE(sink.w->complete(j));
    CHECK(pass(*sink.w) == 1);
    CHECK(pass(*sink.w) == 2);
}

TEST_CASE("a join takes a frame only when all its inputs have it") {
    plan p;
    p.stages = {{"left", {}, true}, {"right", {}, true}, {"join", {0, 1}, false}};
    bench b(p);
    const seated left = b.sit(0), right = b.sit(1), join = b.sit(2);
    CHECK(pass(*left.w) == 0);
    job j;
    CHECK(join.w->begin(j, 0) == outcome::empty);
    CHECK(pass(*right.w) == 0);
    CHECK(pass(*join.w) == 0);
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK(b.c->link[1].tail.load() == 1);
}

TEST_CASE("words that begin in mid-run give the source the right first number") {
    plan p = chain();
    p.first_ring_sequence = 1003;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 1003; n < 1050; ++n) {
        CHECK(pass(*source.w) == n);
        CHECK(pass(*sink.w) == n);
    }
}

TEST_CASE("a revoked worker can neither submit nor commit, and learns it") {
    bench b(chain());
    const seated source = b.sit(0);
    job open, submitted;
    REQUIRE(source.w->begin(open, 0) == outcome::ok);
    REQUIRE(source.w->begin(submitted, 1) == outcome::ok);
    REQUIRE(source.w->submit(submitted));
    const seated successor = b.die(source, blame::none, 2);
    CHECK_FALSE(source.w->submit(open));
    CHECK_FALSE(source.w->commit(submitted));
    job j;
    CHECK(source.w->begin(j, 0) == outcome::revoked);
    CHECK(pass(*successor.w) == 0);
    CHECK(pass(*successor.w) == 1);
}

TEST_CASE("a source that waits for its turn is notified of a stop and of the end of the run") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    CHECK(source.w->await_due() == outcome::ok);
    CHECK(pass(*source.w) == 0);
    begin_stop(*b.c);
    CHECK_FALSE(try_finish_stop(*b.c));  // it has not acknowledged
    CHECK(source.w->await_due() == outcome::stopping);
    REQUIRE(try_finish_stop(*b.c));
    CHECK(load(b.c->end) == 1);
    CHECK(source.w->await_due() == outcome::ok);  // the frame may have to be made again
    CHECK(pass(*sink.w) == 0);
    CHECK(source.w->await_due() == outcome::closed);
}

TEST_CASE("the stamps of a job's earlier frame are gone when its word opens") {
    bench b(chain());
    const seated source = b.sit(0);
    job first, again;
    REQUIRE(source.w->begin(first, 0) == outcome::ok);
    source.w->start_clock(first);
    REQUIRE(source.w->submit(first));
    const shm::job_block& info = b.c->job_info[first.index];
    CHECK(load(info.process_since_ns) != 0);
    CHECK(load(info.submitted_since_ns) != 0);
    REQUIRE(source.w->commit(first));
    REQUIRE(source.w->complete(first));
    REQUIRE(source.w->begin(again, 0) == outcome::ok);
    REQUIRE(again.index == first.index);
    CHECK(load(info.process_since_ns) == 0);
    CHECK(load(info.submitted_since_ns) == 0);
}

TEST_CASE("a process that takes an entry over finds its predecessor's clocks stopped") {
    bench b(chain());
    const seated source = b.sit(0);
    shm::incarnation& e = b.c->entry[source.incarnation.entry];
    shm::word* const clocks[] = {&e.busy_since_ns,      &e.processing_since_ns, &e.device_since_ns,
                                 &e.finishing_since_ns, &e.paused_since_ns,     &e.pause};
    // killed in the middle of all of it
    for (shm::word* clock : clocks) clock->store(1, std::memory_order_relaxed);
    (void)b.die(source, blame::none, 0);
    incarnation_id next;
    do {
        next = appoint(*b.c, 1);
        REQUIRE(next);
        mark_fenced(*b.c, next.entry);
    } while (next.entry != source.incarnation.entry);
    for (const shm::word* clock : clocks) CHECK(load(*clock) == 0);
}

TEST_CASE("a late attempt changes the word that was read, not its successor's later word") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    SECTION("a source's number") {
        shm::word& at = b.c->source[0].sequence_lease[0];
        u64 after = 0;
        blame_waiting(*b.c, 0, 0, true, [&] {
            CHECK(pass(*source.w) == 0);
            after = load(at);
        });
        CHECK(load(at) == after);
        CHECK(lease_word::of(after).generation == 1);
        CHECK(pass(*sink.w) == 0);
    }
    SECTION("an input that the successor has in hand") {
        REQUIRE(pass(*source.w) == 0);
        job j;
        blame_waiting(*b.c, 1, 0, true, [&] { REQUIRE(sink.w->begin(j, 0) == outcome::ok); });
        REQUIRE(sink.w->submit(j));
        REQUIRE(sink.w->commit(j));
        REQUIRE(sink.w->complete(j));
        CHECK(load(b.c->link[0].tail) == 1);
    }
    SECTION("one that waits still") {
        REQUIRE(pass(*source.w) == 0);
        blame_waiting(*b.c, 1, 0, true);
        blame_waiting(*b.c, 1, 0, false);
        u32 seen = 0;
        for_each_lease_of(*b.c, 1, 0, [&](const shm::word&, u64 raw, u32 generation) {
            const lease_word w = lease_word::of(raw).seen_at(generation);
            CHECK(w.failures() == 1);
            CHECK(w.alone());
            ++seen;
        });
        CHECK(seen == 1);
    }
}

TEST_CASE("only the frame of a COMMITTED word is reported before the word moves on") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    CHECK(pass(*sink.w) == 0);
    job committed, submitted;
    REQUIRE(sink.w->begin(committed, 0) == outcome::ok);
    REQUIRE(sink.w->submit(committed));
    REQUIRE(sink.w->commit(committed));
    REQUIRE(sink.w->begin(submitted, 1) == outcome::ok);
    REQUIRE(sink.w->submit(submitted));
    doom(*b.c, sink.incarnation.entry);
    REQUIRE(appoint(*b.c, 1));
    std::vector<u64> reported;
    REQUIRE(revoke(*b.c, 1, sink.incarnation.epoch, [&](u64 ring_sequence) {
        CHECK(job_word::of(load(b.c->job[committed.index])).state == job_state::committed);
        reported.push_back(ring_sequence);
    }));
    CHECK(reported == std::vector<u64>{1});
    CHECK(job_word::of(load(b.c->job[committed.index])).state == job_state::idle);
    CHECK(job_word::of(load(b.c->job[submitted.index])).state == job_state::aborted);
}

TEST_CASE("static parts that are damaged after a worker's start change no other words") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    shm::stage_block& damaged = b.c->stage[1];
    CHECK(pass(*source.w) == 0);
    damaged.inputs = ~0U;
    damaged.input_group[0] = 0x7fff'ffff;
    damaged.source = 0x7fff'ffff;
    b.c->stage[0].source = shm::none;
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*source.w) == 1);
    CHECK(pass(*sink.w) == 1);
}
