// Entries and seats: which process may take a seat, how it learns that, and when an entry may be reused.

#include <vector>

#include "ring/event_domain.hpp"
#include "ring/exit_notes.hpp"
#include "ring/takeover_pause.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {
entry_word entry(const bench& b, u32 k) { return entry_word::of(load(b.c->entry[k].identity)); }
}  // namespace

TEST_CASE("an entry is reused only when its process has ended and no word has its epoch") {
    bench b(chain());
    const seated old = b.sit(0);
    job j;
    REQUIRE(old.w->begin(j, 0) == outcome::ok);
    CHECK_FALSE(reusable(*b.c, old.incarnation.entry));
    doom(*b.c, old.incarnation.entry);
    CHECK_FALSE(reusable(*b.c, old.incarnation.entry));
    const seated successor = b.sit(0);
    REQUIRE(revoke(*b.c, 0, old.incarnation.epoch));
    (void)requeue(*b.c, 0, old.incarnation.epoch, blame::none, 1);
    mark_fenced(*b.c, old.incarnation.entry);
    // ABORTED words still name it: another supervisor must be able to find their owner.
    CHECK_FALSE(reusable(*b.c, old.incarnation.entry));
    REQUIRE(reclaim(*b.c, 0, old.incarnation.epoch));
    CHECK(reusable(*b.c, old.incarnation.entry));
    b.c->entry[old.incarnation.entry].exit_note.store(note_exit(3));
    b.c->entry[old.incarnation.entry].first_commit_ns.store(5);
    b.c->entry[old.incarnation.entry].last_commit_ns.store(5);
    b.c->entry[old.incarnation.entry].work_ns.store(5);
    b.c->entry[old.incarnation.entry].depth.store(5);
    b.c->entry[old.incarnation.entry].events_published.store(1);
    const incarnation_id next = appoint(*b.c, 0);
    CHECK(next.entry == old.incarnation.entry);
    CHECK(b.c->entry[next.entry].exit_note.load() == 0);
    CHECK(b.c->entry[next.entry].first_commit_ns.load() == 0);
    CHECK(b.c->entry[next.entry].last_commit_ns.load() == 0);
    CHECK(b.c->entry[next.entry].work_ns.load() == 0);
    CHECK(b.c->entry[next.entry].depth.load() == 0);
    CHECK(b.c->entry[next.entry].events_published.load() == 0);
    (void)successor;
}

TEST_CASE("a run supports 192 processes at a time and any number in sequence") {
    bench b(chain());
    seated sink = b.sit(1);
    seated source = b.sit(0);
    for (u32 round = 0; round < 3 * shm::max_incarnations; ++round) {
        job j;
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        CHECK(j.ring_sequence == round);
        source = b.die(source, blame::none, 1);
        CHECK(source.incarnation.epoch == round + 2);
        CHECK(pass(*source.w) == round);
        CHECK(pass(*sink.w) == round);
    }
    std::vector<incarnation_id> unfenced;
    while (unfenced.size() < shm::max_incarnations) {
        const incarnation_id incarnation = reserve_standby(*b.c, 0);
        if (!incarnation) break;
        unfenced.push_back(incarnation);
    }
    CHECK(unfenced.size() == shm::max_incarnations - 2);
    CHECK_FALSE(appoint(*b.c, 0));
    mark_fenced(*b.c, unfenced.back().entry);
    CHECK(appoint(*b.c, 0).entry == unfenced.back().entry);
}

TEST_CASE("an entry is claimed once, not after a withdrawal, and then can't be withdrawn") {
    bench b(chain());
    const incarnation_id incarnation = appoint(*b.c, 0);
    REQUIRE(incarnation.epoch == 1);
    CHECK(claim(*b.c, incarnation) == claim_result::ok);
    CHECK(claim(*b.c, incarnation) == claim_result::withdrawn);
    CHECK_FALSE(withdraw(*b.c, incarnation.entry));
    const incarnation_id next = appoint(*b.c, 0);
    CHECK(next.epoch == 2);
    CHECK(withdraw(*b.c, next.entry));
    CHECK(claim(*b.c, next) == claim_result::withdrawn);
    CHECK_FALSE(go_live(*b.c, next));
}

TEST_CASE("a fenced incarnation stays fenced") {
    bench b(chain());
    const seated source = b.sit(0);
    mark_fenced(*b.c, source.incarnation.entry);
    doom(*b.c, source.incarnation.entry);
    CHECK(entry(b, source.incarnation.entry).state == entry_state::fenced);
    CHECK_FALSE(go_live(*b.c, source.incarnation));
}

TEST_CASE("a standby owns no word until it is promoted, and only a claimed one of this seat is") {
    bench b(chain());
    const seated old = b.sit(0);
    const incarnation_id standby = reserve_standby(*b.c, 0);
    REQUIRE(standby);
    CHECK(entry(b, standby.entry).epoch == 0);
    CHECK_FALSE(promote(*b.c, 0, standby.entry));  // no process has claimed it
    REQUIRE(claim_standby(*b.c, standby) == claim_result::ok);
    CHECK_FALSE(promote(*b.c, 1, standby.entry));  // the entry belongs to another seat
    CHECK(promoted_epoch(*b.c, standby) == 0);
    const incarnation_id incarnation = promote(*b.c, 0, standby.entry);
    CHECK(incarnation.epoch == old.incarnation.epoch + 1);
    CHECK(promoted_epoch(*b.c, standby) == incarnation.epoch);
    CHECK(entry(b, standby.entry).state == entry_state::live);
    CHECK_FALSE(promote(*b.c, 0, standby.entry));
    REQUIRE(revoke(*b.c, 0, old.incarnation.epoch));
    CHECK(b.job(0).epoch == incarnation.epoch);
}

TEST_CASE("a seat that names a standby whose entry has no epoch yet has promoted no process") {
    bench b(chain());
    const seated old = b.sit(0);
    const incarnation_id standby = reserve_standby(*b.c, 0);
    REQUIRE(claim_standby(*b.c, standby) == claim_result::ok);
    // a supervisor died between its two CASes
    b.c->seat[0].current.store(seat_word{old.incarnation.epoch + 1, standby.entry}.pack());
    CHECK(promoted_epoch(*b.c, standby) == 0);
}

TEST_CASE("a flipped bit neither creates an exit note nor changes it to another valid one") {
    for (const u64 note :
         {u64{0}, note_exit(3), note_exit(0), note_signal(11), note_signal_from_outside(15)}) {
        const exit_note whole = exit_note::of(note);
        CHECK(whole.present == (note != 0));
        for (unsigned bit = 0; bit < 64; ++bit) {
            CAPTURE(note, bit);
            CHECK_FALSE(exit_note::of(note ^ u64{1} << bit).present);
        }
    }
    CHECK(exit_note::of(note_exit(259)).exit_code == 3);
    CHECK(exit_note::of(note_signal(11)).signal == 11);
    CHECK_FALSE(exit_note::of(note_signal(11)).outside);
    CHECK(exit_note::of(note_signal_from_outside(15)).signal == 15);
    CHECK(exit_note::of(note_signal_from_outside(15)).outside);
}

TEST_CASE("a process waits externally only if a time and a reason say so, not a flipped bit") {
    shm::incarnation e{};
    for (unsigned bit = 0; bit < 64; ++bit) {
        e.paused_since_ns.store(u64{1} << bit);
        CHECK(paused_since(e) == 0);
        e.paused_since_ns.store(0);
        e.pause.store(u64{1} << bit);
        CHECK(paused_since(e) == 0);
        e.pause.store(0);
    }
    e.pause.store(static_cast<u64>(shm::pause_reason::link));
    e.paused_since_ns.store(4711);
    CHECK(paused_since(e) == 4711);
}

TEST_CASE("no flipped bit makes or clears the note of a requested end") {
    CHECK(requested_end_of(0) == requested_end::none);
    for (const requested_end why : {requested_end::down, requested_end::restart}) {
        CHECK(requested_end_of(note_requested_end(why)) == why);
        CHECK_FALSE(exit_note::of(note_requested_end(why)).present);
        for (unsigned bit = 0; bit < 64; ++bit)
            CHECK(requested_end_of(note_requested_end(why) ^ u64{1} << bit) == requested_end::none);
    }
    for (const u64 note : {note_exit(1), note_signal(9), note_signal_from_outside(15)})
        CHECK(requested_end_of(note) == requested_end::none);
}

TEST_CASE("a process that has taken over waits while others end or open their devices, for 2 s at most") {
    const bench b(chain());
    const seated own = b.sit(0), other = b.sit(1);
    const auto on = [&](u32 domain = 2) { return others_come_or_go(*b.c, own.incarnation.entry, domain); };
    CHECK_FALSE(on());
    shm::word& events = b.c->entry[other.incarnation.entry].events_published;
    events.store(published_in(1));  // a joint takeover has not reached its seat yet
    CHECK(on());
    CHECK_FALSE(on(0));
    events.store(published_in(2));
    CHECK_FALSE(on());
    const incarnation_id successor = appoint(*b.c, 1);
    CHECK(on());  // the other process is not DOOMED yet
    doom(*b.c, other.incarnation.entry);
    CHECK(on());
    mark_fenced(*b.c, other.incarnation.entry);
    CHECK_FALSE(on());
    REQUIRE(claim(*b.c, successor) == claim_result::ok);
    CHECK(on());
    REQUIRE(go_live(*b.c, successor));
    CHECK_FALSE(on());
    const incarnation_id standby = reserve_standby(*b.c, 1);
    CHECK_FALSE(on());
    REQUIRE(claim_standby(*b.c, standby) == claim_result::ok);
    CHECK(on());
    takeover_pause pause(own.incarnation.entry, 2);
    CHECK_FALSE(pause.is_on(*b.c));  // it has not taken over
    pause.begin(ns_per_s);
    CHECK(pause.is_on(*b.c, ns_per_s));
    CHECK(pause.is_on(*b.c, 3 * ns_per_s - 1));  // the supervisor may be dead
    CHECK_FALSE(pause.is_on(*b.c, 3 * ns_per_s));
    pause.begin(ns_per_s);
    CHECK(pause.is_on(*b.c, ns_per_s));
    b.c->entry[standby.entry].live_since_ns.store(1);
    CHECK_FALSE(pause.is_on(*b.c, ns_per_s + ns_per_ms));
}
