// The rules of the words, one at a time, each at the moment at which it matters: a hook at the crash point
// between two steps of a worker does what other processes do there.

#include <future>
#include <vector>

#include "core/crash_point.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

/// Calls `what` the first time that this thread passes `point`.
struct once_at {
    template <typename F>
    once_at(crash_point point, F what) {
        set_crash_hook([point, what, done = false](crash_point now) mutable {
            if (now != point || done) return;
            done = true;
            what();
        });
    }
    ~once_at() { set_crash_hook({}); }
    once_at(const once_at&) = delete;
    once_at& operator=(const once_at&) = delete;
};

/// The slot of the READY frame with this ring sequence.
u32 slot_of(const bench& b, u32 link, u64 ring_sequence) {
    for (u32 k = 0; k < b.c->link[link].slots; ++k)
        if (b.slot(link, k).state == slot_state::ready &&
            b.c->frames[link].header[k].ring_sequence.load() == ring_sequence)
            return k;
    return shm::none;
}

}  // namespace

TEST_CASE("a middle stage leases no frame beyond its output's window, for any number of free buffers") {
    bench b(chain_of_three());
    const seated source = b.sit(0), middle = b.sit(1), sink = b.sit(2);
    const u32 window = b.c->link[1].window;
    for (u32 n = 0; n < window; ++n) {
        CHECK(pass(*source.w) == n);
        CHECK(pass(*middle.w) == n);
    }
    CHECK(pass(*source.w) == window);
    job j;
    CHECK(middle.w->output(0).has_free_slot());
    CHECK(middle.w->begin(j, 0) == outcome::full);
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*middle.w) == window);
}

TEST_CASE("neither source nor sink closes before the last frame") {
    plan p = chain();
    p.end = 3;
    bench b(p);
    const seated source = b.sit(0), sink = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*sink.w) == n);
    job j, last;
    CHECK(source.w->begin(j, 0) == outcome::full);
    REQUIRE(sink.w->begin(last, 0) == outcome::ok);
    CHECK(sink.w->begin(j, 1) == outcome::empty);
}

TEST_CASE("a join continues until every one of its rings has reached the end") {
    plan p;
    p.stages = {{"left", {}, true}, {"right", {}, true}, {"join", {0, 1}, false}};
    p.end = 1;
    bench b(p);
    const seated left = b.sit(0), right = b.sit(1);
    seated join = b.sit(2);
    CHECK(pass(*left.w) == 0);
    CHECK(pass(*right.w) == 0);
    job j;
    {  // the owner dies when its first input is DONE
        const once_at death(crash_point::input_done, [&] {
            join.w->input(0).sweep();
            CHECK(b.c->link[0].tail.load() == 1);
            job seen;
            CHECK(join.w->begin(seen, 1) == outcome::empty);
            CHECK_FALSE(all_delivered(*b.c));
        });
        REQUIRE(join.w->begin(j, 0) == outcome::ok);
        REQUIRE(join.w->submit(j));
        REQUIRE(join.w->commit(j));
        REQUIRE(join.w->complete(j));
    }
    CHECK(join.w->begin(j, 0) == outcome::closed);
    CHECK(all_delivered(*b.c));
}

TEST_CASE("a run is over when the last ring has reached its end, not the first one") {
    plan p = chain_of_three();
    p.end = 1;
    bench b(p);
    const seated source = b.sit(0), middle = b.sit(1), sink = b.sit(2);
    CHECK(pass(*source.w) == 0);
    CHECK(pass(*middle.w) == 0);
    CHECK(b.c->link[0].tail.load() == 1);
    CHECK_FALSE(all_delivered(*b.c));
    CHECK(pass(*sink.w) == 0);
    CHECK(all_delivered(*b.c));
}

TEST_CASE("a sink takes no frame ahead of one that its predecessor still holds") {
    bench b(chain());
    const seated source = b.sit(0), old = b.sit(1);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    job held;
    REQUIRE(old.w->begin(held, 0) == outcome::ok);
    doom(*b.c, old.incarnation.entry);
    const seated successor = b.sit(1);
    REQUIRE(revoke(*b.c, 1, old.incarnation.epoch));
    job j;
    CHECK(successor.w->begin(j, 0) == outcome::empty);  // frame 1 waits, but frame 0 has not been released
    (void)requeue(*b.c, 1, old.incarnation.epoch, blame::none, 1);
    CHECK(pass(*successor.w) == 0);
    CHECK(pass(*successor.w) == 1);
    b.fence(old);
}

TEST_CASE("a join takes no frame while one of its inputs is still held by a predecessor") {
    plan p;
    p.stages = {{"left", {}, true}, {"right", {}, true}, {"join", {0, 1}, false}};
    bench b(p);
    const seated left = b.sit(0), right = b.sit(1), old = b.sit(2);
    CHECK(pass(*left.w) == 0);
    CHECK(pass(*right.w) == 0);
    job held, j;
    REQUIRE(old.w->begin(held, 0) == outcome::ok);
    doom(*b.c, old.incarnation.entry);
    const seated successor = b.sit(2);
    REQUIRE(revoke(*b.c, 2, old.incarnation.epoch));
    shm::word& first = b.c->link[0].group[held.input[0].index][b.c->stage[2].input_group[0]];
    const lease_word w = lease_word::of(load(first));
    REQUIRE(cas(
        first, load(first),
        lease_word{w.generation, 0, 0, 0, lease_state::wait}.pack()));  // released, the second one not yet
    CHECK(successor.w->begin(j, 0) == outcome::empty);
    (void)requeue(*b.c, 2, old.incarnation.epoch, blame::none, 1);
    CHECK(pass(*successor.w) == 0);
}

TEST_CASE("with two frames in flight no frame counts an attempt, and each is leased alone") {
    bench b(chain());
    seated source = b.sit(0);
    job first, second, j, extra;
    SECTION("a sink") {
        seated sink = b.sit(1);
        for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
        REQUIRE(sink.w->begin(first, 0) == outcome::ok);
        REQUIRE(sink.w->begin(second, 1) == outcome::ok);
        sink = b.die(sink, blame::own, 2);
        for (const u32 slot : {first.input[0].index, second.input[0].index}) {
            CHECK(b.lease(0, slot, 0).failures() == 0);
            CHECK(b.lease(0, slot, 0).alone());
        }
        REQUIRE(sink.w->begin(j, 0) == outcome::ok);
        CHECK(sink.w->begin(extra, 1) == outcome::own_work);
        (void)b.die(sink, blame::own, 1);  // no other frame was in progress: now the death counts
        CHECK(b.lease(0, first.input[0].index, 0).failures() == 1);
    }
    SECTION("a source") {
        REQUIRE(source.w->begin(first, 0) == outcome::ok);
        REQUIRE(source.w->begin(second, 1) == outcome::ok);
        source = b.die(source, blame::own, 2);
        for (u32 n = 0; n < 2; ++n)
            CHECK(lease_word::of(load(b.c->source[0].sequence_lease[n])).failures() == 0);
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        CHECK(j.alone);
        CHECK(j.ring_sequence == 0);
        CHECK(source.w->begin(extra, 1) == outcome::own_work);
        REQUIRE(source.w->submit(j));
        REQUIRE(source.w->commit(j));
        REQUIRE(source.w->complete(j));
        CHECK(pass(*source.w) == 1);
    }
}

TEST_CASE("a worker that waits for a buffer learns there that it has a successor") {
    bench b(chain());
    const seated source = b.sit(0);
    link_ref link(*b.c, 0);
    std::vector<slot_ref> taken;
    seated successor;
    // every buffer is taken after the check of them, and the seat with them
    const once_at between(crash_point::sequence_leased, [&] {
        for (u64 v = 1; slot_ref s = link.claim(shm::max_jobs - 1, v); ++v) taken.push_back(s);
        doom(*b.c, source.incarnation.entry);
        successor.incarnation = appoint(*b.c, 0);
        CHECK(revoke(*b.c, 0, source.incarnation.epoch));
    });
    job j;
    auto begun = std::async(std::launch::async, [&] { return source.w->begin(j, 0); });
    const bool in_time = begun.wait_for(std::chrono::seconds(2)) == std::future_status::ready;
    CHECK(in_time);
    if (!in_time)  // it would wait forever: release it
        b.c->link[0].slot[0].store(b.slot(0, 0).freed().pack());
    CHECK(begun.get() == outcome::revoked);
}

TEST_CASE("a worker that loses a frame returns its job word, one version on, and takes the next") {
    plan p = chain_of_three();
    p.stages[1].instances = 2;
    bench b(p);
    const seated source = b.sit(0), one = b.sit(1), other = b.sit(2);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    const once_at between(crash_point::job_opened, [&] { CHECK(pass(*other.w) == 0); });
    job j;
    REQUIRE(one.w->begin(j, 0) == outcome::ok);
    CHECK(j.ring_sequence == 1);
    CHECK(j.version == 2);
    CHECK(b.job(j.index) == job_word{2, one.incarnation.epoch, job_state::open});
}

TEST_CASE("the job word is recycled last, when no word is tagged with its version") {
    bench b(chain_of_three());
    const seated source = b.sit(0), middle = b.sit(1);
    CHECK(pass(*source.w) == 0);
    job j;
    REQUIRE(middle.w->begin(j, 0) == outcome::ok);
    REQUIRE(middle.w->submit(j));
    REQUIRE(middle.w->commit(j));
    int steps = 0;
    set_crash_hook([&](crash_point at) {
        if (at != crash_point::slot_ready && at != crash_point::input_done) return;
        ++steps;
        CHECK(b.job(j.index).state == job_state::committed);
    });
    CHECK(middle.w->complete(j));
    set_crash_hook({});
    CHECK(steps == 2);
    CHECK(b.job(j.index) == job_word{2, middle.incarnation.epoch, job_state::idle});
}

TEST_CASE("a commit that others have made counts only when it is of this very job: version and epoch") {
    bench b(chain());
    const seated old = b.sit(0);
    job helped, submitted;
    REQUIRE(old.w->begin(helped, 0) == outcome::ok);
    REQUIRE(old.w->submit(helped));
    const u64 raw = load(b.c->job[helped.index]);
    // a consumer was faster
    REQUIRE(cas(b.c->job[helped.index], raw, job_word::of(raw).with(job_state::committed).pack()));
    CHECK(old.w->commit(helped));
    REQUIRE(old.w->complete(helped));
    REQUIRE(old.w->begin(submitted, 0) == outcome::ok);
    REQUIRE(old.w->submit(submitted));
    const seated successor = b.die(old, blame::none, 1);
    job theirs;
    REQUIRE(successor.w->begin(theirs, 0) == outcome::ok);
    REQUIRE(successor.w->submit(theirs));
    REQUIRE(successor.w->commit(theirs));
    REQUIRE(theirs.index == submitted.index);
    CHECK_FALSE(old.w->commit(submitted));
}

TEST_CASE("committed frames of a dead worker are finished, its others are processed again") {
    bench b(chain_of_three());
    const seated source = b.sit(0), old = b.sit(1), sink = b.sit(2);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    job done, open;
    REQUIRE(old.w->begin(done, 0) == outcome::ok);
    REQUIRE(old.w->begin(open, 1) == outcome::ok);
    REQUIRE(old.w->submit(done));
    REQUIRE(old.w->commit(done));
    const seated successor = b.die(old, blame::none, 1);
    CHECK(slot_of(b, 1, 0) == done.output[0].index);
    CHECK(b.lease(0, done.input[0].index, 0).state == lease_state::done);
    CHECK(pass(*successor.w) == 1);
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*sink.w) == 1);
}

TEST_CASE("a source's frame that it had committed when it died is never made a second time") {
    bench b(chain());
    const seated old = b.sit(0), sink = b.sit(1);
    job j;
    REQUIRE(old.w->begin(j, 0) == outcome::ok);
    REQUIRE(old.w->submit(j));
    REQUIRE(old.w->commit(j));
    const seated successor = b.die(old, blame::none, 0);
    CHECK(pass(*successor.w) == 1);
    CHECK(pass(*sink.w) == 0);
    CHECK(pass(*sink.w) == 1);
}

TEST_CASE("buffers of a dead worker are in quarantine until its fence, and spares suffice") {
    bench b(chain());
    const seated old = b.sit(0), sink = b.sit(1);
    std::vector<job> held(b.c->stage[0].in_flight);
    for (u32 k = 0; k < held.size(); ++k) REQUIRE(old.w->begin(held[k], k) == outcome::ok);
    doom(*b.c, old.incarnation.entry);
    const seated successor = b.sit(0);
    REQUIRE(revoke(*b.c, 0, old.incarnation.epoch));
    (void)requeue(*b.c, 0, old.incarnation.epoch, blame::none, 3);
    for (const job& j : held) CHECK(b.slot(0, j.output[0].index).state == slot_state::quarantined);
    const u32 window = b.c->link[0].window;
    for (u32 n = 0; n < window; ++n) CHECK(pass(*successor.w) == n);
    CHECK(successor.w->output(0).has_free_slot());
    for (u32 n = 0; n < window; ++n) CHECK(pass(*sink.w) == n);
    for (const job& j : held) CHECK(b.slot(0, j.output[0].index).state == slot_state::quarantined);
    b.fence(old);
    for (const job& j : held) CHECK(b.slot(0, j.output[0].index).state == slot_state::free);
}

TEST_CASE("a dead worker's job word is not reused while a frame or a buffer has its tag") {
    bench b(chain_of_three());
    const seated source = b.sit(0), old = b.sit(1);
    CHECK(pass(*source.w) == 0);
    job j;
    REQUIRE(old.w->begin(j, 0) == outcome::ok);
    doom(*b.c, old.incarnation.entry);
    const seated successor = b.sit(1);
    REQUIRE(revoke(*b.c, 1, old.incarnation.epoch));
    mark_fenced(*b.c, old.incarnation.entry);
    CHECK_FALSE(reclaim(*b.c, 1, old.incarnation.epoch));  // there was no requeue
    CHECK(b.slot(1, j.output[0].index).state == slot_state::fill);
    CHECK(b.job(j.index).state == job_state::aborted);
    const u64 raw = load(b.c->link[1].slot[j.output[0].index]);
    REQUIRE(cas(b.c->link[1].slot[j.output[0].index], raw,
                slot_word::of(raw).with(slot_state::quarantined).pack()));
    CHECK_FALSE(reclaim(*b.c, 1, old.incarnation.epoch));  // its input is still leased
    CHECK(b.job(j.index).state == job_state::aborted);
    (void)requeue(*b.c, 1, old.incarnation.epoch, blame::none, 1);
    CHECK(reclaim(*b.c, 1, old.incarnation.epoch));
    CHECK(b.job(j.index) == job_word{j.version + 1, successor.incarnation.epoch, job_state::idle});
}

TEST_CASE("a stop ends after the highest frame that a source has started") {
    bench b(chain());
    const seated source = b.sit(0);
    for (u64 n = 0; n < 2; ++n) CHECK(pass(*source.w) == n);
    job j, none;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    begin_stop(*b.c);
    CHECK_FALSE(try_finish_stop(*b.c));
    CHECK(source.w->begin(none, 1) == outcome::stopping);
    REQUIRE(try_finish_stop(*b.c));
    CHECK(b.c->end.load() == 3);
}

TEST_CASE("a change that a process may wait for rings its doorbell") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    const auto rings = [&](u32 stage) { return b.c->stage[stage].doorbell.value.load() >> 1U; };
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    u32 before = rings(1);
    REQUIRE(source.w->submit(j));
    CHECK(rings(1) != before);  // its consumer may help
    REQUIRE(source.w->commit(j));
    before = rings(1);
    REQUIRE(source.w->complete(j));
    CHECK(rings(1) != before);  // READY
    before = rings(0);
    CHECK(pass(*sink.w) == 0);
    CHECK(rings(0) != before);  // a buffer is free
    before = rings(1);
    (void)b.die(source, blame::none, 0);
    CHECK(rings(1) != before);  // the process that it would have rung
}
