// An entry's bit flips while no supervisor runs: the next supervisor determines the owner, for any flipped
// bit, from the seats' words, the live processes and the dead one's file; where none of these determines it,
// it reports so.
#include "ring/check/repair.hpp"
#include "seated.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;

/// source -> middle -> sink: each has one fenced incarnation and one current one.
struct left_entries {
    test::bench b{test::chain_of_three()};
    test::seated source = b.sit(0), middle = b.sit(1), sink = b.sit(2);
    entry_evidence evidence;
    std::vector<u32> alive;

    left_entries() {
        for (u32 seat = 0; seat < 3; ++seat) (void)b.sit(seat);
        rename(source, 4000), rename(middle, 4001), rename(sink, 4002);
        evidence.is_ours = [this](u32 pid) {
            return std::find(alive.begin(), alive.end(), pid) != alive.end();
        };
    }
    /// Gives an incarnation its own pid: here all of them are this process.
    void rename(test::seated& s, u32 pid) {
        shm::word& at = b.c->entry[s.incarnation.entry].identity;
        entry_word w = entry_word::of(load(at));
        w.pid = pid;
        at.store(w.pack());
        b.c->entry[s.incarnation.entry].start_time.store(7);
        alive.push_back(pid);
    }
    [[nodiscard]] entry_word is(u32 entry) const { return entry_word::of(load(b.c->entry[entry].identity)); }
    [[nodiscard]] u32 sits(u32 seat) const { return seat_word::of(load(b.c->seat[seat].current)).entry; }
    void record(u32 entry) {
        const entry_word w = is(entry);
        evidence.recorded.push_back({w.seat, entry, w.epoch, w.pid, false, w.epoch == 0});
    }
    std::optional<u64> flipped(u32 entry, unsigned bit) const {
        shm::word& at = b.c->entry[entry].identity;
        at.fetch_xor(u64{1} << bit);
        const auto value = adopted_entry(*b.c, entry, evidence);
        at.fetch_xor(u64{1} << bit);
        return value;
    }
    /// For every bit of the word.
    void check_all(u32 entry, const entry_word& wanted) const {
        for (unsigned bit = 0; bit < 64; ++bit) {
            INFO("bit " << bit);
            const auto value = flipped(entry, bit);
            REQUIRE(value);
            REQUIRE(entry_word::of(*value) == wanted);
        }
    }
};

}  // namespace

TEST_CASE("the entry of a live process is found by its seat and pid after any bit flip") {
    left_entries r;
    const bool by_file = GENERATE(false, true);
    CAPTURE(by_file);
    for (u32 seat = 0; seat < 3; ++seat) {
        const u32 entry = r.sits(seat);
        r.b.c->entry[entry].start_time.store(9);
        constexpr u32 pids[] = {0x0F0F, 0x1234,
                                0x3A5C};  // no two differ in one bit only: they started together
        const u32 pid = pids[seat];
        entry_word w = r.is(entry);
        w.pid = pid;
        r.b.c->entry[entry].identity.store(w.pack());
        r.alive.push_back(pid);
        if (by_file) r.record(entry);
        r.check_all(entry, w);
    }
}

TEST_CASE("a dead process of a seat is retired, for any pid in its entry") {
    left_entries r;
    const u32 entry = r.sits(1);
    r.b.c->entry[entry].start_time.store(9);
    r.alive.clear();
    const entry_word w = r.is(entry);
    for (unsigned bit = 0; bit < 64; ++bit) {
        INFO("bit " << bit);
        const auto value = r.flipped(entry, bit);
        REQUIRE(value);
        const entry_word recorded = entry_word::of(*value);
        REQUIRE(recorded.seat == w.seat);
        REQUIRE(recorded.epoch == w.epoch);
        REQUIRE(recorded.state == entry_state::live);
        REQUIRE(std::popcount(recorded.pid ^ w.pid) <= 1);
    }
    r.record(entry);  // the file identifies it exactly
    r.check_all(entry, w);
}

TEST_CASE("an appointed unclaimed entry is restored as it was") {
    left_entries r;
    const incarnation_id incarnation = appoint(*r.b.c, 2);
    REQUIRE(incarnation);
    r.check_all(incarnation.entry, {0, incarnation.epoch, 2, entry_state::starting});
}

TEST_CASE("an entry in retirement is identified by the file, for any live process") {
    left_entries r;
    doom(*r.b.c, r.middle.incarnation.entry);
    const bool is_alive = GENERATE(true, false);
    CAPTURE(is_alive);
    if (!is_alive) r.alive.clear();
    // Its words still carry its epoch.
    const job_word idle{4, r.middle.incarnation.epoch, job_state::aborted};
    r.b.c->job[r.b.c->seat[1].first_job].store(idle.pack());
    r.record(r.middle.incarnation.entry);
    r.check_all(r.middle.incarnation.entry, r.is(r.middle.incarnation.entry));
}

TEST_CASE("a standby is identified by the file and its pid") {
    left_entries r;
    const incarnation_id incarnation = reserve_standby(*r.b.c, 1);
    REQUIRE(incarnation);
    shm::word& at = r.b.c->entry[incarnation.entry].identity;
    const entry_word standby{5001, 0, 1, entry_state::standby};
    at.store(standby.pack());
    r.b.c->entry[incarnation.entry].start_time.store(9);
    r.alive.push_back(5001);
    r.record(incarnation.entry);
    r.check_all(incarnation.entry, standby);
}

TEST_CASE("an entry without an owner is free, unless a job word refers to it") {
    left_entries r;
    r.alive.clear();
    u32 unused = 0;
    while (r.is(unused).state != entry_state::unused) ++unused;
    r.check_all(unused, {});
    // Fenced, and all its words have been passed on.
    mark_fenced(*r.b.c, r.source.incarnation.entry);
    r.check_all(r.source.incarnation.entry, {});
    // Fenced, and a word carries its epoch: it is retired once more, which changes nothing that was done.
    r.b.c->job[r.b.c->seat[0].first_job].store(
        job_word{4, r.source.incarnation.epoch, job_state::aborted}.pack());
    for (unsigned bit = 4; bit < 64; ++bit) {
        const auto value = r.flipped(r.source.incarnation.entry, bit);
        REQUIRE(value);
        const entry_word recorded = entry_word::of(*value);
        CHECK(recorded.state == entry_state::doomed);
        CHECK(recorded.epoch == r.source.incarnation.epoch);
        CHECK(recorded.seat == 0);
    }
}

TEST_CASE("a live process named by no seat and no file is never guessed or misattributed") {
    left_entries r;
    doom(*r.b.c, r.middle.incarnation.entry);
    const entry_word w = r.is(r.middle.incarnation.entry);
    for (unsigned bit = 0; bit < 64; ++bit) {
        const auto value = r.flipped(r.middle.incarnation.entry, bit);
        if (!value) continue;
        INFO("bit " << bit);
        CHECK(entry_word::of(*value) == w);
    }
}

TEST_CASE("without evidence no seat is restored, damaged or not") {
    left_entries r;
    CHECK_FALSE(adopted_entry(*r.b.c, r.sits(0), r.evidence));
    r.b.c->seat[2].current.fetch_xor(2);
    CHECK_FALSE(r.flipped(r.sits(0), 40));
}
