// What a helper commits and what it must not commit: the words as it may find them between its two reads,
// with events that behave as CUDA's, where one that was never recorded reads as complete.

#include <map>

#include "ring/event_domain.hpp"
#include "ring/helper.hpp"
#include "tests/ring/seated.hpp"
#include "tests/support/event_context.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

/// Events by (entry, slot): pending while the device works, complete otherwise.
struct events {
    std::map<std::pair<u32, u32>, bool> pending;
    u32 asked = 0;
};

struct helped_ring {
    bench b;
    events all;
    event_context context{[this](u32 entry, u32 slot) {
        ++all.asked;
        return !all.pending[{entry, slot}];
    }};
    helper help;
    link_ref link;

    explicit helped_ring(const plan& p = chain(), u32 domain = 0)
        : b(p), help(*b.c, context, domain), link(*b.c, 0) {}
    seated sit(u32 seat) {
        seated s = b.sit(seat);
        publish(s);
        return s;
    }
    void publish(const seated& s, u32 domain = 0) const {
        for (u32 k = 0; k < shm::max_slots; ++k) {
            const u32 names[2] = {s.incarnation.entry, k};
            std::memcpy(b.c->event_handle[s.incarnation.entry][k], names, sizeof names);
        }
        b.c->entry[s.incarnation.entry].events_published.store(published_in(domain));
    }
    /// A SUBMITTED job whose device is still working or not.
    job submitted(const seated& s, bool at_work) {
        job j;
        REQUIRE(s.w->begin(j, 0) == outcome::ok);
        all.pending[{s.incarnation.entry, j.output[0].index}] = at_work;
        REQUIRE(s.w->submit(j));
        return j;
    }
};

}  // namespace

TEST_CASE("a submitted complete frame is committed by any waiter, and its owner continues") {
    helped_ring r;
    const seated source = r.sit(0);
    job j = r.submitted(source, true);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.b.job(j.index).state == job_state::submitted);
    r.all.pending.clear();
    CHECK(r.help.help(r.link) == 1);
    CHECK(r.b.job(j.index).state == job_state::committed);
    CHECK(r.b.slot(0, j.output[0].index).state == slot_state::ready);
    CHECK(r.b.c->link[0].committed.load() == 1);
    CHECK(source.w->commit(j));
    CHECK(source.w->complete(j));
    CHECK(r.b.c->link[0].committed.load() == 1);
}

TEST_CASE("an OPEN job is never helped: its event was never recorded, and reads as complete") {
    helped_ring r;
    const seated source = r.sit(0);
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.b.job(j.index).state == job_state::open);
}

TEST_CASE("a job that moved on between a helper's polls is not committed by its earlier event") {
    helped_ring r;
    const seated source = r.sit(0);
    job j = r.submitted(source, false);
    REQUIRE(source.w->commit(j));
    const u64 filled = load(r.b.c->link[0].slot[j.output[0].index]);  // the first read
    REQUIRE(source.w->complete(j));
    const job next = r.submitted(source, true);  // the same job word, another slot, its device still working
    REQUIRE(next.index == j.index);
    REQUIRE(next.output[0].index != j.output[0].index);
    r.b.c->link[0].slot[j.output[0].index].store(filled);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.b.job(next.index).state == job_state::submitted);
}

TEST_CASE("the valid event is that of the incarnation that J names, not another of its seat") {
    helped_ring r;
    seated standby;
    // an earlier entry of the same seat, whose events were never recorded
    standby.incarnation = reserve_standby(*r.b.c, 0);
    REQUIRE(claim_standby(*r.b.c, standby.incarnation) == claim_result::ok);
    r.publish(standby);
    const seated source = r.sit(0);
    REQUIRE(source.incarnation.entry > standby.incarnation.entry);
    const job j = r.submitted(source, true);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.b.job(j.index).state == job_state::submitted);
    r.all.pending.clear();
    CHECK(r.help.help(r.link) == 1);
}

TEST_CASE("a helper that may not import events yet marks only what owners have committed") {
    helped_ring r;
    const seated source = r.sit(0);
    job j = r.submitted(source, false);  // the event reads as complete
    const incarnation_id standby = reserve_standby(*r.b.c, 0);
    REQUIRE(claim_standby(*r.b.c, standby) == claim_result::ok);  // it is not ready
    takeover_pause pause(~0U, 0);
    pause.begin(now_ns());
    r.help.put_off_imports(pause);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.all.asked == 0);
    SECTION("the owner commits") {
        REQUIRE(source.w->commit(j));
        CHECK(r.help.help(r.link) == 1);
    }
    SECTION("later it imports the event") {
        r.b.c->entry[standby.entry].live_since_ns.store(1);
        pause.begin(now_ns());
        CHECK(r.help.help(r.link) == 1);
    }
    CHECK(r.b.job(j.index).state == job_state::committed);
}

TEST_CASE("a helper commits only for owners in its own MPS domain, and marks what they have committed") {
    const u32 own = GENERATE(0U, 1U, 2U);
    helped_ring r(chain(), own);
    const seated source = r.b.sit(0);
    job j = r.submitted(source, false);  // the event reads as complete
    for (const u32 domain : {0U, 1U, 2U, 3U}) {
        if (domain == own) continue;
        r.publish(source, domain);
        CHECK(r.help.help(r.link) == 0);
    }
    CHECK(r.all.asked == 0);
    CHECK(r.b.job(j.index).state == job_state::submitted);
    SECTION("the owner is in the helper's domain") {
        r.publish(source, own);
        CHECK(r.help.help(r.link) == 1);
    }
    SECTION("the owner commits") {
        REQUIRE(source.w->commit(j));
        CHECK(r.help.help(r.link) == 1);
    }
    CHECK(r.b.slot(0, j.output[0].index).state == slot_state::ready);
}

TEST_CASE("events are imported when they are all published, not before") {
    helped_ring r;
    seated source = r.b.sit(0);
    const job early = r.submitted(source, false);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.all.asked == 0);
    r.publish(source);
    CHECK(r.help.help(r.link) == 1);
    CHECK(r.b.job(early.index).state == job_state::committed);
}

TEST_CASE("jobs with host work after their event are committed by their owner only") {
    plan p = chain();
    p.stages[0].owner_commits = true;
    helped_ring r(p);
    const seated source = r.sit(0);
    const job j = r.submitted(source, false);
    CHECK(r.help.help(r.link) == 0);
    CHECK(r.b.job(j.index).state == job_state::submitted);
}

TEST_CASE("a committed frame whose committer died before READY is made READY by the next poller") {
    helped_ring r;
    const seated source = r.sit(0);
    job j = r.submitted(source, false);
    REQUIRE(source.w->commit(j));
    CHECK(r.b.slot(0, j.output[0].index).state == slot_state::fill);
    CHECK(r.help.help(r.link) == 1);
    CHECK(r.b.slot(0, j.output[0].index).state == slot_state::ready);
}

TEST_CASE("a helper at the second output queries the job's single event and marks only its own slot") {
    helped_ring r(fork_and_join());
    const seated source = r.sit(0);
    link_ref second(*r.b.c, 1);
    // The rings' readers have different speeds: the job's slots have different numbers.
    const slot_ref taken = r.link.claim(shm::max_jobs - 1, 7);
    REQUIRE(taken);
    job j = r.submitted(source, true);
    REQUIRE(j.output[0].index != j.output[1].index);
    CHECK(r.help.help(second) == 0);
    CHECK(r.all.asked == 1);
    CHECK(r.b.job(j.index).state == job_state::submitted);
    r.all.pending.clear();
    CHECK(r.help.help(second) == 1);
    CHECK(r.b.job(j.index).state == job_state::committed);
    CHECK(r.b.slot(1, j.output[1].index).state == slot_state::ready);
    CHECK(r.b.slot(0, j.output[0].index).state == slot_state::fill);
    CHECK(r.help.help(r.link) == 1);
    CHECK(r.b.slot(0, j.output[0].index).state == slot_state::ready);
    CHECK(source.w->commit(j));
    CHECK(source.w->complete(j));
    CHECK(r.b.c->link[0].committed.load() == 1);
    CHECK(r.b.c->link[1].committed.load() == 1);
}
