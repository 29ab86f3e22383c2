// Words with a flipped bit: no process acts on one, what the other words determine is written back, and no
// history of kills and flips loses, repeats or tears a frame.
#include <array>

#include "core/crash_point.hpp"
#include "ring/check/repair.hpp"
#include "ring/parameter_box.hpp"
#include "ring/stream_end.hpp"
#include "run_with_flips.hpp"
#include "simulation.hpp"

namespace {

using namespace carousel;
using namespace carousel::ring;

using test::run_in_hand;

TEST_CASE("any one flipped bit makes a word damaged, which is neither a state nor a tag") {
    const u64 words[] = {job_word{77, 5, job_state::submitted}.pack(),
                         slot_word{9, 3, 77, slot_state::fill}.pack(),
                         lease_word{9, 3, 77, 2, lease_state::leased}.pack(),
                         entry_word{1234, 5, 2, entry_state::live}.pack(),
                         group_word{3, 8, group_state::latest}.pack(),
                         asset_word{shm::asset_state::loading, 5, 2}.pack(),
                         seat_word{5, 3}.pack(),
                         parameter_state{4, 90}.pack(),
                         end_claim{12, 3, 77}.pack()};
    for (const u64 w : words) {
        CHECK(intact(w));
        for (unsigned bit = 0; bit < 64; ++bit) CHECK_FALSE(intact(w ^ u64{1} << bit));
    }
    for (unsigned bit = 0; bit < 64; ++bit) {
        const u64 one = u64{1} << bit;
        CHECK(job_word::of(words[0] ^ one).state == job_state::damaged);
        CHECK(slot_word::of(words[1] ^ one).state == slot_state::damaged);
        CHECK(lease_word::of(words[2] ^ one).state == lease_state::damaged);
        CHECK_FALSE(lease_word::of(words[2] ^ one).tagged(3, 77));
        CHECK(lease_word::of(words[2] ^ one).seen_at(10).state == lease_state::damaged);
        CHECK(entry_word::of(words[3] ^ one).state == entry_state::damaged);
        CHECK(group_word::of(words[4] ^ one).state == group_state::damaged);
        CHECK(asset_word::of(words[5] ^ one).state == shm::asset_state::damaged);
    }
}

TEST_CASE("a number keeps its parity, and its largest values keep their meaning") {
    for (const u64 n : {u64{0}, u64{1}, u64{3}, (u64{1} << 40U) + 5, end_unknown, end_stopping}) {
        CHECK(shm::end_word::unpack(shm::end_word::pack(n)) == n);
        for (unsigned bit = 0; bit < 64; ++bit) {
            CHECK(shm::end_word::unpack(shm::end_word::pack(n) ^ u64{1} << bit) == shm::no_number);
            CHECK(shm::tail_word::unpack(shm::tail_word::pack(n) ^ u64{1} << bit) == 0);
        }
    }
    for (u64 n = 0; n < 64; ++n) CHECK(intact(event_tag(3, n, 5)));
}

TEST_CASE("no stage starts a frame over a damaged word, and continues once it is repaired") {
    run_in_hand r;
    test::seated source = r.sit(0), middle = r.sit(1);
    (void)test::pass(*source.w);
    job j;
    SECTION("the lease of the only frame") {
        r.b.c->link[0].group[0][0].fetch_xor(1U << 20U);
        CHECK(middle.w->begin(j, 0) == outcome::empty);
        r.b.c->link[0].group[0][0].fetch_xor(1U << 20U);
    }
    SECTION("the slot of the only frame") {
        r.b.c->link[0].slot[0].fetch_xor(u64{1} << 50U);
        CHECK(middle.w->begin(j, 0) == outcome::empty);
        r.b.c->link[0].slot[0].fetch_xor(u64{1} << 50U);
    }
    SECTION("the end") {
        r.b.c->end.raw().fetch_xor(2);
        CHECK(middle.w->begin(j, 0) == outcome::empty);
        CHECK(source.w->begin(j, 0) == outcome::empty);
        r.b.c->end.raw().fetch_xor(2);
    }
    SECTION("the ring's tail") {
        r.b.c->link[0].tail.raw().fetch_xor(u64{1} << 3U);
        CHECK(r.b.c->link[0].tail.load() == 0);
        CHECK_FALSE(link_ref(*r.b.c, 0).sweep());
        r.b.c->link[0].tail.raw().fetch_xor(u64{1} << 3U);
    }
    SECTION("the seat: it is no sign that somebody else sits on it") {
        r.b.c->seat[1].current.fetch_xor(u64{1} << 17U);
        CHECK_FALSE(middle.w->revoked());
        CHECK_FALSE(appoint(*r.b.c, 1));
        CHECK_FALSE(revoke(*r.b.c, 1, 0));
        r.b.c->seat[1].current.fetch_xor(u64{1} << 17U);
    }
    CHECK(test::pass(*middle.w) == 0);
}

TEST_CASE("a word that the supervisor knows is repaired after any bit flip") {
    run_in_hand r;
    test::seated source = r.sit(0);
    (void)test::pass(*source.w);
    for (unsigned bit = 0; bit < 64; ++bit) {
        INFO("bit " << bit);
        for (shm::word* at : {&r.b.c->end.raw(), &r.b.c->seat[0].current,
                              &r.b.c->entry[source.incarnation.entry].identity, &r.b.c->source[0].ended}) {
            const u64 truth = load(*at);
            const auto value = r.flip(*at, bit);
            // STARTING is as near as LIVE if the state's or the parity's bit is wrong: known_run tells which
            // one it is.
            const bool two = at == &r.b.c->entry[source.incarnation.entry].identity && (bit == 1 || bit == 3);
            if (two) {
                CHECK_FALSE(value);
                known_run recovered = r.known;
                recovered.processes[0].ready = true;
                CHECK(repaired_value(*r.b.c, *r.made, recovered, damaged_words(*r.b.c, *r.made).front()) ==
                      truth);
            } else {
                CHECK(value == truth);
            }
            r.write_back(truth);
        }
        // A horizon may become higher than it was, never lower.
        const parameter_state was = parameter_state::of(load(r.b.c->parameters.state));
        const auto value = r.flip(r.b.c->parameters.state, bit);
        REQUIRE(value);
        CHECK(parameter_state::of(*value).sets == was.sets);
        CHECK(parameter_state::of(*value).horizon >= was.horizon);
        r.write_back(*value);
    }
}

TEST_CASE("the word of a frame that a sink does not take is repaired, as WAIT or as SKIPPED") {
    run_in_hand r;
    r.b.c->stage[2].every = r.made->stage[2].every = 2;
    const test::seated source = r.sit(0), middle = r.sit(1);
    (void)r.sit(2);
    for (u64 n = 0; n < 2; ++n) CHECK(test::pass(*source.w) == n);
    for (u64 n = 0; n < 2; ++n) CHECK(test::pass(*middle.w) == n);
    for (u32 slot = 0; slot < 2; ++slot) {
        const bool taken = load(r.b.c->frames[1].header[slot].ring_sequence) % 2 == 0;
        shm::word& at = r.b.c->link[1].group[slot][0];
        const u64 truth = load(at);
        for (unsigned bit = 0; bit < 64; ++bit) {
            INFO("slot " << slot << ", bit " << bit);
            const auto value = r.flip(at, bit);
            CHECK((value || taken));  // one that is taken may also be DONE: the block is rebuilt
            const lease_state state =
                !value ? lease_state::wait
                       : lease_word::of(*value).seen_at(r.b.slot(1, slot).generation).state;
            CHECK((state == lease_state::wait || (!taken && state == lease_state::skipped)));
            r.write_back(truth);
        }
    }
}

TEST_CASE("an entry without a process becomes free after any bit flip") {
    run_in_hand r;
    (void)r.sit(0), (void)r.sit(1), (void)r.sit(2);
    const auto check = [&](u32 entry) {
        shm::word& at = r.b.c->entry[entry].identity;
        const u64 truth = load(at);
        for (unsigned bit = 0; bit < 64; ++bit) {
            INFO("entry " << entry << ", bit " << bit);
            REQUIRE(r.flip(at, bit) == truth);
            r.write_back(truth);
        }
    };
    check(100);
    const incarnation_id next = appoint(*r.b.c, 1);
    REQUIRE(next);
    r.known.processes.push_back({1, next.entry, next.epoch, 0, true, false});
    check(next.entry);
}

TEST_CASE("a damaged tail indicates no further damage, but bounds nothing") {
    run_in_hand r;
    test::seated source = r.sit(0);
    for (int k = 0; k < 6; ++k) {
        (void)test::pass(*source.w);
        r.b.c->link[0].tail.store(static_cast<u64>(k) + 1);
    }
    for (unsigned bit = 0; bit < 64; ++bit) {
        r.b.c->link[0].tail.raw().fetch_xor(u64{1} << bit);
        CHECK(check_known(*r.b.c, *r.made, r.known).empty());
        r.b.c->link[0].tail.raw().fetch_xor(u64{1} << bit);
    }
}

TEST_CASE("no number outside the window blocks the frames of a dead process") {
    run_in_hand r;
    test::seated source = r.sit(0);
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    r.b.c->source[0].sequence_lease[shm::max_window - 1].fetch_xor(1);
    REQUIRE(r.b.c->link[0].window < shm::max_window);
    REQUIRE(appoint(*r.b.c, 0));
    CHECK(revoke(*r.b.c, 0, source.incarnation.epoch));
    (void)requeue(*r.b.c, 0, source.incarnation.epoch, blame::none, 1);
    CHECK(reclaim(*r.b.c, 0, source.incarnation.epoch));
}

TEST_CASE("the parameters' state is repaired while the rings move on") {
    run_in_hand r;
    test::seated source = r.sit(0);
    (void)test::pass(*source.w);
    for (unsigned bit = 0; bit < 64; ++bit) {
        INFO("bit " << bit);
        const u64 truth = load(r.b.c->parameters.state);
        const auto value = r.flip(r.b.c->parameters.state, bit);
        REQUIRE(value);
        r.b.c->link[0].tail.store(1);
        CHECK(repaired_value(*r.b.c, *r.made, r.known, damaged_words(*r.b.c, *r.made).front()) == value);
        r.b.c->link[0].tail.store(0);
        r.write_back(truth);
    }
}

TEST_CASE("an unloaded asset is distinguished from a loading one, except for a live process's bits") {
    run_in_hand r;
    test::seated loader = r.sit(0);
    r.b.c->assets = r.made->assets = 1;
    r.b.c->asset[0].state.store(asset_word{}.pack());
    u32 recovered = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
        const auto value = r.flip(r.b.c->asset[0].state, bit);
        if (value) CHECK(*value == asset_word{}.pack());
        recovered += value ? 1 : 0;
        r.b.c->asset[0].state.store(asset_word{}.pack());
    }
    CHECK(recovered >= 56);  // not: its state, and the epochs that the seat has had
}

TEST_CASE("an idle job word repaired while its owner opens it is opened, and not seen as revoked") {
    const bool damaged = GENERATE(false, true);
    CAPTURE(damaged);
    run_in_hand r;
    test::seated source = r.sit(0);
    set_crash_hook([&, done = false](crash_point at) mutable {
        if (at != crash_point::job_chosen || std::exchange(done, true)) return;
        shm::word& first = r.b.c->job[r.b.c->seat[0].first_job];
        job_word w = job_word::of(load(first));
        w.version += u64{1} << 34U;
        first.store(w.pack() ^ (damaged ? u64{1} << 9U : 0));
    });
    job j;
    const outcome o = source.w->begin(j, 0);
    set_crash_hook({});
    CHECK(o == (damaged ? outcome::empty : outcome::ok));
    if (o != outcome::ok) return;
    CHECK(source.w->submit(j));
    CHECK(source.w->commit(j));
}

TEST_CASE("a frame that skipped a reader is never reported as another once it is back") {
    plan p;
    p.stages = {{"source", {}, true}, {"port", {0}, false}, {"slow", {0}, false}};
    p.stages[1].skips = GENERATE(true, false);
    p.stages[1].optional = !p.stages[1].skips;
    run_in_hand r(p);
    const test::seated source = r.sit(0);
    (void)test::pass(*source.w);
    close_group(*r.b.c, 0, 0);
    open_group(*r.b.c, 0, 0);
    shm::word& lease = r.b.c->link[0].group[0][0];
    const u64 truth = load(lease);
    REQUIRE(lease_word::of(truth).state == lease_state::skipped);
    for (unsigned bit = 0; bit < 64; ++bit) {
        INFO("bit " << bit);
        CHECK(r.flip(lease, bit).value_or(truth) == truth);
        lease.store(truth);
    }
}

TEST_CASE("a word with two possible meanings is never guessed") {
    run_in_hand r;
    test::seated source = r.sit(0);
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    REQUIRE(source.w->submit(j));
    // Only the parity is wrong: SUBMITTED, or COMMITTED with another bit.
    CHECK_FALSE(r.flip(r.b.c->job[j.index], 3));
    r.b.c->job[j.index].fetch_xor(1U << 3U);
    // Its tags determine its version.
    const u64 truth = load(r.b.c->job[j.index]);
    CHECK(r.flip(r.b.c->job[j.index], 30) == truth);
}

TEST_CASE("with two damaged words, words that depend on rules are left to a rebuild of the block") {
    run_in_hand r;
    test::seated source = r.sit(0);
    (void)test::pass(*source.w);
    shm::control_block& c = *r.b.c;
    c.link[0].slot[0].fetch_xor(u64{1} << 50U);
    const std::pair<const char*, word*> seconds[] = {
        {"slot", &c.link[0].slot[1]},
        {"lease", &c.link[0].group[1][0]},
        {"tail", &c.link[0].tail.raw()},
        {"number", &c.source[0].sequence_lease[1]},
        {"job", &c.job[3]},
        {"group", &c.link[0].group_state[0]},
        {"sequence", &c.job_info[0].ring_sequence.raw()},
    };
    for (const auto& [name, at] : seconds) {
        CAPTURE(name);
        at->fetch_xor(u64{1} << 50U);
        const auto damaged = damaged_words(c, *r.made);
        CHECK(damaged.size() == 2);
        for (const damaged_word& w : damaged) CHECK_FALSE(repaired_value(c, *r.made, r.known, w));
        CHECK(check_parity(c, *r.made).size() == 2);
        at->fetch_xor(u64{1} << 50U);
    }
    CHECK(check_parity(c, *r.made)[0].word == "ring of source: slot 0");
}

TEST_CASE("a word that has changed since the check is not repaired") {
    run_in_hand r;
    r.b.c->end.raw().fetch_xor(2);
    const damaged_word w = damaged_words(*r.b.c, *r.made).front();
    r.b.c->end.store(5);
    CHECK_FALSE(ring::write_back(*r.b.c, *r.made, w, shm::end_word::pack(end_unknown)));
    CHECK(r.b.c->end.load() == 5);
}

TEST_CASE("flipped bits between kills lose, repeat, tear and block no frames") {
    u64 repaired = 0, remade = 0, respelled = 0;
    std::array<u64, word_kinds> repaired_of{};
#ifdef CAROUSEL_SANITIZED
    constexpr u64 last = 25;
#else
    constexpr u64 last = 60;
#endif
    for (u64 seed = 1; seed <= last; ++seed) {
        test::simulation_options o;
        o.seed = seed;
        o.instances = seed % 3 == 0 ? 2 : 1;
        o.in_flight = 1 + static_cast<u32>(seed % 3);
        o.kills = static_cast<u32>(seed % 10);
        o.stop_early = seed % 5 == 0;
        o.flips = 40;
        if (seed % 4 == 1) o.ends_at = 30;
        const test::simulation_result r = test::simulate(o);
        INFO("seed " << seed << ": lost " << r.lost << ", repeated " << r.repeated << ", torn " << r.torn
                     << ", late " << r.late << ", disorder " << r.disorder << ", mixed " << r.mixed
                     << ", stuck " << r.stuck);
        REQUIRE(r.sound());
        repaired += r.repaired, remade += r.remade, respelled += r.respelled;
        for (u32 k = 0; k < word_kinds; ++k) repaired_of[k] += r.repaired_of[k];
    }
    INFO(repaired << " mended, " << respelled << " of them in another spelling, " << remade << " made anew");
    CHECK(repaired > remade);
    for (u32 k = 0; k < word_kinds; ++k) {
        INFO("words of kind " << k);
        // The run has no assets, and only its producer writes a header.
        const bool none = k == static_cast<u32>(word_kind::asset) || k == static_cast<u32>(word_kind::header);
        CHECK((repaired_of[k] == 0) == none);
    }
}

}  // namespace
