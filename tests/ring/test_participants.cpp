// Entries and seats: who may sit, who is told so, and when an entry may be used again.

#include <vector>

#include "ring/asked_end.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {
entry_word entry(const bench& b, u32 k) { return entry_word::of(load(b.c->entry[k].identity)); }
}  // namespace

TEST_CASE("an entry is used again when its process is gone and no word bears its epoch, not before") {
    bench b(chain());
    const seated old = b.sit(0);
    job j;
    REQUIRE(old.w->begin(j, 0) == outcome::ok);
    CHECK_FALSE(reusable(*b.c, old.who.entry));
    doom(*b.c, old.who.entry);
    CHECK_FALSE(reusable(*b.c, old.who.entry));
    const seated successor = b.sit(0);
    REQUIRE(revoke(*b.c, 0, old.who.epoch));
    (void)requeue(*b.c, 0, old.who.epoch, blame::none, 1);
    mark_fenced(*b.c, old.who.entry);
    // ABORTED words still name it: another supervisor must find whose they are.
    CHECK_FALSE(reusable(*b.c, old.who.entry));
    REQUIRE(reclaim(*b.c, 0, old.who.epoch));
    CHECK(reusable(*b.c, old.who.entry));
    b.c->entry[old.who.entry].exit_note.store(note_exit(3));
    b.c->entry[old.who.entry].first_commit_ns.store(5);
    b.c->entry[old.who.entry].last_commit_ns.store(5);
    b.c->entry[old.who.entry].work_ns.store(5);
    b.c->entry[old.who.entry].depth.store(5);
    b.c->entry[old.who.entry].events_published.store(1);
    const incarnation_id next = appoint(*b.c, 0);
    CHECK(next.entry == old.who.entry);
    CHECK(b.c->entry[next.entry].exit_note.load() == 0);
    CHECK(b.c->entry[next.entry].first_commit_ns.load() == 0);
    CHECK(b.c->entry[next.entry].last_commit_ns.load() == 0);
    CHECK(b.c->entry[next.entry].work_ns.load() == 0);
    CHECK(b.c->entry[next.entry].depth.load() == 0);
    CHECK(b.c->entry[next.entry].events_published.load() == 0);
    (void)successor;
}

TEST_CASE("a run has 192 lives at once and any number one after the other") {
    bench b(chain());
    seated sink = b.sit(1);
    seated source = b.sit(0);
    for (u32 life = 0; life < 3 * shm::max_incarnations; ++life) {
        job j;
        REQUIRE(source.w->begin(j, 0) == outcome::ok);
        CHECK(j.ring_sequence == life);
        source = b.die(source, blame::none, 1);
        CHECK(source.who.epoch == life + 2);
        CHECK(pass(*source.w) == life);
        CHECK(pass(*sink.w) == life);
    }
    std::vector<incarnation_id> unfenced;
    while (unfenced.size() < shm::max_incarnations) {
        const incarnation_id who = reserve_standby(*b.c, 0);
        if (!who) break;
        unfenced.push_back(who);
    }
    CHECK(unfenced.size() == shm::max_incarnations - 2);
    CHECK_FALSE(appoint(*b.c, 0));
    mark_fenced(*b.c, unfenced.back().entry);
    CHECK(appoint(*b.c, 0).entry == unfenced.back().entry);
}

TEST_CASE(
    "an entry is claimed once, and not at all when it was withdrawn, and a claimed one can't be withdrawn") {
    bench b(chain());
    const incarnation_id who = appoint(*b.c, 0);
    REQUIRE(who.epoch == 1);
    CHECK(claim(*b.c, who) == claim_result::ok);
    CHECK(claim(*b.c, who) == claim_result::withdrawn);
    CHECK_FALSE(withdraw(*b.c, who.entry));
    const incarnation_id next = appoint(*b.c, 0);
    CHECK(next.epoch == 2);
    CHECK(withdraw(*b.c, next.entry));
    CHECK(claim(*b.c, next) == claim_result::withdrawn);
    CHECK_FALSE(go_live(*b.c, next));
}

TEST_CASE("what is fenced stays fenced") {
    bench b(chain());
    const seated source = b.sit(0);
    mark_fenced(*b.c, source.who.entry);
    doom(*b.c, source.who.entry);
    CHECK(entry(b, source.who.entry).state == entry_state::fenced);
    CHECK_FALSE(go_live(*b.c, source.who));
}

TEST_CASE("a standby owns no word until it is promoted, and only a claimed one of this seat is") {
    bench b(chain());
    const seated old = b.sit(0);
    const incarnation_id standby = reserve_standby(*b.c, 0);
    REQUIRE(standby);
    CHECK(entry(b, standby.entry).epoch == 0);
    CHECK_FALSE(promote(*b.c, 0, standby.entry));  // nobody has claimed it
    REQUIRE(claim_standby(*b.c, standby) == claim_result::ok);
    CHECK_FALSE(promote(*b.c, 1, standby.entry));  // another seat's
    CHECK(promoted_epoch(*b.c, standby) == 0);
    const incarnation_id who = promote(*b.c, 0, standby.entry);
    CHECK(who.epoch == old.who.epoch + 1);
    CHECK(promoted_epoch(*b.c, standby) == who.epoch);
    CHECK(entry(b, standby.entry).state == entry_state::live);
    CHECK_FALSE(promote(*b.c, 0, standby.entry));
    REQUIRE(revoke(*b.c, 0, old.who.epoch));
    CHECK(b.job(0).epoch == who.epoch);
}

TEST_CASE("a seat that names a standby whose entry bears no epoch yet has promoted nobody") {
    bench b(chain());
    const seated old = b.sit(0);
    const incarnation_id standby = reserve_standby(*b.c, 0);
    REQUIRE(claim_standby(*b.c, standby) == claim_result::ok);
    // a supervisor died between its two CASes
    b.c->seat[0].current.store(seat_word{old.who.epoch + 1, standby.entry}.pack());
    CHECK(promoted_epoch(*b.c, standby) == 0);
}

TEST_CASE("no flipped bit is an exit note where there is none, and none makes another one of it") {
    for (const u64 note :
         {u64{0}, note_exit(3), note_exit(0), note_signal(11), note_signal_from_outside(15)}) {
        const exit_note whole = exit_note::of(note);
        CHECK(whole.told == (note != 0));
        for (unsigned bit = 0; bit < 64; ++bit) {
            CAPTURE(note, bit);
            CHECK_FALSE(exit_note::of(note ^ u64{1} << bit).told);
        }
    }
    CHECK(exit_note::of(note_exit(259)).exit_code == 3);
    CHECK(exit_note::of(note_signal(11)).signal == 11);
    CHECK_FALSE(exit_note::of(note_signal(11)).outside);
    CHECK(exit_note::of(note_signal_from_outside(15)).signal == 15);
    CHECK(exit_note::of(note_signal_from_outside(15)).outside);
}

TEST_CASE("a process waits for something outside where a time and a reason say so, not by one flipped bit") {
    shm::incarnation e{};
    for (unsigned bit = 0; bit < 64; ++bit) {
        e.hold_since_ns.store(u64{1} << bit);
        CHECK(held_since(e) == 0);
        e.hold_since_ns.store(0);
        e.hold.store(u64{1} << bit);
        CHECK(held_since(e) == 0);
        e.hold.store(0);
    }
    e.hold.store(static_cast<u64>(shm::hold_reason::link));
    e.hold_since_ns.store(4711);
    CHECK(held_since(e) == 4711);
}

TEST_CASE("no flipped bit makes or unmakes the note of a requested end, and the protocol reads none in it") {
    CHECK(asked_end_of(0) == asked_end::none);
    for (const asked_end why : {asked_end::down, asked_end::restart}) {
        CHECK(asked_end_of(note_asked(why)) == why);
        CHECK_FALSE(exit_note::of(note_asked(why)).told);
        for (unsigned bit = 0; bit < 64; ++bit)
            CHECK(asked_end_of(note_asked(why) ^ u64{1} << bit) == asked_end::none);
    }
    for (const u64 note : {note_exit(1), note_signal(9), note_signal_from_outside(15)})
        CHECK(asked_end_of(note) == asked_end::none);
}
