// Frames that a rebuild keeps (ring/reentry.hpp).
#include "ring/reentry.hpp"

#include <set>

#include "reentry_histories.hpp"
#include "ring/header_check.hpp"
#include "ring/parameter_box.hpp"
#include "seated.hpp"
#include "simulation.hpp"

using namespace carousel;
using namespace carousel::test;
using ring::kept_frames;

namespace {

/// source -> middle -> sink; the source has made three frames, the middle has passed one on.
struct three_frames {
    bench old{chain_of_three()};
    bench fresh{chain_of_three()};
    three_frames() {
        seated source = old.sit(0), middle = old.sit(1);
        for (u32 k = 0; k < 3; ++k) pass(*source.w);
        pass(*middle.w);
    }
    [[nodiscard]] std::optional<device::status_word> status(u32 link, u32 slot) const {
        const shm::frame_header& h = old.c->frames[link].header[slot];
        return device::status_word{h.ring_sequence.load(), h.epoch,
                                   static_cast<u32>(device::status_state::ready)};
    }
    kept_frames find(u64 first = 0, const std::vector<bool>& made_once = {}) {
        return ring::find_kept_frames(*old.c, *fresh.c, {first, 10, {}, made_once},
                                      [&](u32 link, u32 slot) { return status(link, slot); });
    }
    kept_frames rebuild(const std::vector<bool>& made_once = {}) {
        kept_frames kept = find(0, made_once);
        ring::enter_frames(*fresh.c, *old.c, kept, 1);
        return kept;
    }
    [[nodiscard]] u32 slot_of(u32 link, u64 number) const {
        for (u32 k = 0; k < old.c->link[link].slots; ++k)
            if (old.slot(link, k).state == ring::slot_state::ready &&
                old.c->frames[link].header[k].ring_sequence.load() == number)
                return k;
        return shm::none;
    }
};

}  // namespace

TEST_CASE("after a rebuild each stage continues where it was, with the frames in the rings") {
    three_frames run;
    const kept_frames kept = run.rebuild();
    CHECK(kept.done_below == std::vector<u64>{3, 1, 0});
    CHECK(kept.tail == std::vector<u64>{1, 0});
    CHECK(kept.count() == 3);
    // a change of parameters applies to frames that are still to be made
    CHECK(ring::parameter_state::of(ring::load(run.fresh.c->parameters.state)).horizon == 3);
    const seated source = run.fresh.sit(0), middle = run.fresh.sit(1), sink = run.fresh.sit(2);
    ring::job j;
    REQUIRE(sink.w->begin(j, 0) == ring::outcome::ok);
    CHECK(j.ring_sequence == 0);
    CHECK(j.input[0].index == run.slot_of(1, 0));
    REQUIRE(middle.w->begin(j, 0) == ring::outcome::ok);
    CHECK(j.ring_sequence == 1);
    CHECK(j.input[0].index == run.slot_of(0, 1));
    REQUIRE(source.w->begin(j, 0) == ring::outcome::ok);
    CHECK(j.ring_sequence == 3);
}

TEST_CASE("a frame that one of its four places does not prove is made again, as are the frames after it") {
    SECTION("its slot is not READY") {
        three_frames run;
        run.old.c->link[0].slot[run.slot_of(0, 2)].store(
            ring::slot_word{1, 0, 1, ring::slot_state::fill}.pack());
        CHECK(run.find().done_below == std::vector<u64>{2, 1, 0});
    }
    SECTION("its slot is damaged") {
        three_frames run;
        run.old.c->link[0].slot[run.slot_of(0, 1)].fetch_xor(1U << 8U);
        CHECK(run.find().done_below == std::vector<u64>{1, 1, 0});
    }
    SECTION("its header is not the sealed one") {
        three_frames run;
        run.old.c->frames[0].header[run.slot_of(0, 1)].meta.born_ns ^= 1;
        CHECK(run.find().done_below == std::vector<u64>{1, 1, 0});
    }
    SECTION("its header names a seat of another stage") {
        three_frames run;
        shm::frame_header& h = run.old.c->frames[0].header[run.slot_of(0, 2)];
        h.maker_seat = 1;
        ring::seal(h, run.old.c->parameters.bytes);
        CHECK(run.find().done_below == std::vector<u64>{2, 1, 0});
    }
    SECTION("another slot has its number as well") {
        three_frames run;
        const u32 second = run.slot_of(0, 2);
        shm::frame_header& h = run.old.c->frames[0].header[second];
        h.ring_sequence.store(1);
        ring::seal(h, run.old.c->parameters.bytes);
        CHECK(run.find().done_below == std::vector<u64>{1, 1, 0});
    }
    SECTION("its status word is of another epoch, or not READY, or cannot be read") {
        three_frames run;
        const u32 slot = run.slot_of(1, 0);
        for (u32 how = 0; how < 4; ++how) {
            const kept_frames kept =
                ring::find_kept_frames(*run.old.c, *run.fresh.c, {0, 10, {}, {}},
                                       [&](u32 l, u32 s) -> std::optional<device::status_word> {
                                           auto word = run.status(l, s);
                                           if (l != 1 || s != slot) return word;
                                           if (how == 0) word->epoch += 1;
                                           if (how == 1)
                                               word->state = static_cast<u32>(device::status_state::writing);
                                           if (how == 2) word->ring_sequence += 1;
                                           if (how == 3) word.reset();
                                           return word;
                                       });
            // Frame 0 has left the source's ring, so it is made from the start.
            CAPTURE(how);
            CHECK(kept.done_below == std::vector<u64>{0, 0, 0});
            CHECK(kept.count() == 0);
        }
    }
}

TEST_CASE("frames from the end of the run on do not enter") {
    three_frames run;
    const kept_frames kept = ring::find_kept_frames(*run.old.c, *run.fresh.c, {0, 2, {}, {}},
                                                    [&](u32 l, u32 s) { return run.status(l, s); });
    CHECK(kept.done_below == std::vector<u64>{2, 1, 0});
}

TEST_CASE("after a rebuild, frames that a stage with `every` does not take are skipped and not read") {
    ring::plan p = chain_of_three();
    p.stages.push_back({"third", {1}, false});
    p.stages.back().every = 3;
    const bench old{p}, fresh{p};
    const seated source = old.sit(0), middle = old.sit(1);
    for (u32 k = 0; k < 3; ++k) pass(*source.w);
    for (u32 k = 0; k < 3; ++k) pass(*middle.w);
    const kept_frames kept =
        ring::find_kept_frames(*old.c, *fresh.c, {0, 10, {0, 0, 0, 3}, {}}, [&](u32 link, u32 slot) {
            const shm::frame_header& h = old.c->frames[link].header[slot];
            return device::status_word{h.ring_sequence.load(), h.epoch,
                                       static_cast<u32>(device::status_state::ready)};
        });
    REQUIRE(kept.done_below == std::vector<u64>{3, 3, 0, 3});
    ring::enter_frames(*fresh.c, *old.c, kept, 1);
    std::vector<ring::lease_state> states;
    for (const u32 slot : kept.slots[1])
        states.push_back(
            ring::lease_word::of(ring::load(fresh.c->link[1].group[slot][fresh.c->stage[3].input_group[0]]))
                .state);
    using enum ring::lease_state;
    CHECK(states == std::vector{done, skipped, skipped});
}

TEST_CASE("epochs after a rebuild are above those of the frames that it keeps") {
    three_frames run;
    shm::frame_header& h = run.old.c->frames[0].header[run.slot_of(0, 1)];
    h.epoch = 70;
    ring::seal(h, run.old.c->parameters.bytes);
    CHECK(ring::epoch_above(*run.old.c, *run.fresh.c) == 70);
    // a seat's word may be damaged
    constexpr u32 known[] = {75, 3};
    CHECK(ring::epoch_above(*run.old.c, *run.fresh.c, known) == 75);
    // after a wrap, small epochs are the newest ones
    run.fresh.c->seat[0].first_epoch = static_cast<u32>(ring::epoch_mask) - 1;
    CHECK(ring::epoch_above(*run.old.c, *run.fresh.c) == 70);
    run.fresh.c->seat[0].first_epoch = 72;
    CHECK(ring::epoch_above(*run.old.c, *run.fresh.c) == 72);
}

namespace {

/// A source whose program continues to run, revoked and with a frame, while the block is rebuilt.
struct unfenced_source {
    bench old{chain_of_three()};
    seated first = old.sit(0);
    ring::plan next_plan() const {
        ring::plan p = chain_of_three();
        p.first.epoch = ring::epoch_above(*old.c, *old.c);
        return p;
    }
    unfenced_source() {
        ring::job j;
        REQUIRE(first.w->begin(j, 0) == ring::outcome::ok);
        revoke(old, first);
    }
    static void revoke(const bench& b, const seated& s) {
        ring::doom(*b.c, s.incarnation.entry);
        REQUIRE(ring::appoint(*b.c, s.incarnation.seat));
        REQUIRE(ring::revoke(*b.c, s.incarnation.seat, s.incarnation.epoch));
        (void)ring::requeue(*b.c, s.incarnation.seat, s.incarnation.epoch, ring::blame::none, 0);
    }
    static u32 quarantined(const bench& b) {
        u32 count = 0;
        for (u32 k = 0; k < b.c->link[0].slots; ++k)
            count += b.slot(0, k).state == ring::slot_state::quarantined ? 1U : 0U;
        return count;
    }
};

}  // namespace

TEST_CASE("the first process of a seat gets the words of a program that was fenced before it") {
    const unfenced_source run;
    const bench fresh{run.next_plan()};
    ring::enter_unfenced(*fresh.c, *run.old.c, run.first.incarnation);
    CHECK(unfenced_source::quarantined(fresh) == 1);
    fresh.fence(run.first);
    CHECK(unfenced_source::quarantined(fresh) == 0);
    const ring::incarnation_id next = ring::appoint(*fresh.c, 0);
    REQUIRE(ring::revoke(*fresh.c, 0, 0));
    const shm::seat_block& seat = fresh.c->seat[0];
    for (u32 k = seat.first_job; k < seat.first_job + seat.jobs; ++k) CHECK(fresh.job(k).epoch == next.epoch);
}

TEST_CASE("the buffers of two programs that are not fenced stay in quarantine until both are") {
    const unfenced_source run;
    const bench fresh{run.next_plan()};
    ring::enter_unfenced(*fresh.c, *run.old.c, run.first.incarnation);
    const seated second = fresh.sit(0);
    unfenced_source::revoke(fresh, second);
    ring::plan p = run.next_plan();
    p.first.epoch = ring::epoch_above(*fresh.c, *fresh.c);
    const bench third{p};
    ring::enter_unfenced(*third.c, *fresh.c, run.first.incarnation);
    ring::enter_unfenced(*third.c, *fresh.c, second.incarnation);
    const auto end = [&](const seated& s) {
        ring::mark_fenced(*third.c, s.incarnation.entry);
        return ring::reclaim(*third.c, s.incarnation.seat, s.incarnation.epoch);
    };
    SECTION("the second one first") {
        CHECK_FALSE(end(second));
        CHECK(unfenced_source::quarantined(third) == 1);
        CHECK(end(run.first));
        CHECK(end(second));
    }
    SECTION("the first one first") {
        CHECK_FALSE(end(run.first));
        CHECK(unfenced_source::quarantined(third) == 1);
        CHECK(end(second));
        CHECK(end(run.first));
    }
    CHECK(unfenced_source::quarantined(third) == 0);
}

TEST_CASE("a ring with too few buffers for unfenced programs quarantines none in other memory") {
    const unfenced_source run;
    const auto crowded = [&] {
        return ring::find_crowded(*run.old.c, *run.old.c, {&run.first.incarnation, 1});
    };
    const shm::link_block& l = run.old.c->link[0];
    CHECK(crowded() == std::vector<bool>(run.old.c->links, false));
    for (u32 k = 0; k < l.slots - l.window; ++k) {
        CHECK_FALSE(crowded()[0]);
        for (shm::word& at : run.old.c->link[0].slot)
            if (ring::slot_word::of(ring::load(at)).state == ring::slot_state::free) {
                at.fetch_xor(1);  // damaged: its use is not known
                break;
            }
    }
    REQUIRE(crowded()[0]);
    CHECK_FALSE(crowded()[1]);
    const bench fresh{run.next_plan()};
    ring::enter_unfenced(*fresh.c, *run.old.c, run.first.incarnation, crowded());
    CHECK(unfenced_source::quarantined(fresh) == 0);
    fresh.fence(run.first);
    CHECK(fresh.slot(0, 0).state == ring::slot_state::free);
}

TEST_CASE("a process whose seat's word is damaged finds that it is revoked, and commits nothing") {
    const bench old{chain_of_three()};
    const seated source = old.sit(0);
    ring::job j;
    REQUIRE(source.w->begin(j, 0) == ring::outcome::ok);
    old.c->seat[0].current.fetch_xor(1U << 20U);
    CHECK_FALSE(ring::appoint(*old.c, 0));
    CHECK_FALSE(ring::revoke(*old.c, 0, source.incarnation.epoch));
    CHECK_FALSE(source.w->revoked());
    ring::abort_all(*old.c, source.incarnation);
    CHECK(source.w->revoked());
    CHECK_FALSE(source.w->submit(j));
}

TEST_CASE("a frame that can't be made again and has no proof is lost alone, and keeps its place") {
    three_frames run;
    SECTION("in the ring of its source") {
        run.old.c->frames[0].header[run.slot_of(0, 1)].meta.born_ns ^= 1;
        const kept_frames kept = run.rebuild({true, false, false});
        // neither can the middle make it: the place is kept in the ring next to the sink
        CHECK(kept.done_below == std::vector<u64>{3, 2, 0});
        CHECK(kept.lost() == std::vector<u64>{1});
        CHECK(kept.count() == 2);
        const seated middle = run.fresh.sit(1), source = run.fresh.sit(0), sink = run.fresh.sit(2);
        ring::job j;
        REQUIRE(middle.w->begin(j, 0) == ring::outcome::ok);
        CHECK(j.ring_sequence == 2);
        CHECK(pass(*sink.w) == 0);
        REQUIRE(sink.w->begin(j, 0) == ring::outcome::ok);
        CHECK(j.ring_sequence == 1);
        CHECK(j.is_tombstone());
        CHECK(j.tombstone_stage == 1);
        REQUIRE(source.w->begin(j, 0) == ring::outcome::ok);
        CHECK(j.ring_sequence == 3);
    }
    SECTION("although it was the last one") {
        run.old.c->frames[0].header[run.slot_of(0, 2)].meta.born_ns ^= 1;
        CHECK(run.find(0, {true, false, false}).lost() == std::vector<u64>{2});
    }
    SECTION("in a ring downstream, after its input was released") {
        run.old.c->frames[1].header[run.slot_of(1, 0)].meta.born_ns ^= 1;
        const kept_frames kept = run.rebuild({true, false, false});
        CHECK(kept.done_below == std::vector<u64>{3, 1, 0});
        CHECK(kept.lost() == std::vector<u64>{0});
        // and once more: the place has no memory that could prove it
        bench third{chain_of_three()};
        const kept_frames again = ring::find_kept_frames(
            *run.fresh.c, *third.c, {0, 10, {}, {true, false, false}},
            [](u32, u32) -> std::optional<device::status_word> { return std::nullopt; });
        REQUIRE(again.slots[1].size() == 3);
        CHECK(again.slots[1][0] != shm::none);
        CHECK(again.lost() == std::vector<u64>{1, 2});
    }
    SECTION("and is reported without a number if its header does not show it") {
        run.old.c->frames[0].header[run.slot_of(0, 2)].ring_sequence.raw().fetch_xor(4);
        const kept_frames kept = run.find(0, {true, false, false});
        CHECK(kept.done_below == std::vector<u64>{2, 1, 0});
        CHECK(kept.unknown == std::vector<bool>{true, false});
    }
    SECTION("and is reported without a number if the number does not follow the others") {
        run.old.c->frames[0].header[run.slot_of(0, 2)].ring_sequence.store(5);
        const kept_frames kept = run.find(0, {true, false, false});
        CHECK(kept.done_below == std::vector<u64>{2, 1, 0});
        CHECK(kept.unknown == std::vector<bool>{true, false});
    }
}

TEST_CASE(
    "a sink that is ahead of the others continues at its own frame, and an absent one holds nothing up") {
    ring::plan two = chain_of_three();
    two.stages.push_back({"other", {0}, false, 1, 1});
    bench old{two}, fresh{two};
    seated source = old.sit(0), middle = old.sit(1), other = old.sit(3);
    for (u32 k = 0; k < 3; ++k) pass(*source.w);
    for (u32 k = 0; k < 2; ++k) pass(*middle.w);
    for (u32 k = 0; k < 3; ++k) pass(*other.w);
    const auto find = [&](std::vector<u64> below, std::vector<u64> recorded = {}) {
        return ring::find_kept_frames(
            *old.c, *fresh.c, {0, 10, std::move(below), {true, false, false, false}, std::move(recorded)},
            [&](u32 link, u32 slot) {
                const shm::frame_header& h = old.c->frames[link].header[slot];
                return device::status_word{h.ring_sequence.load(), h.epoch,
                                           static_cast<u32>(device::status_state::ready)};
            });
    };
    const kept_frames kept = find({0, 0, 0, 3});
    CHECK(kept.done_below == std::vector<u64>{3, 2, 0, 3});
    CHECK(kept.tail == std::vector<u64>{2, 0});
    CHECK(kept.lost().empty());
    CHECK(find({0, 0, 0, shm::no_number}).tail == std::vector<u64>{2, 0});
    // a sink that waits for a frame that no source has begun does not show that the frames before it were
    // made
    const kept_frames waits = find({0, 0, 0, 6}, {0, 0, 0, 3});
    CHECK(waits.done_below == std::vector<u64>{3, 2, 0, 3});
    CHECK(waits.lost().empty());
}

TEST_CASE("histories with rebuilds deliver each frame once, in any pipeline, with any damage") {
    u64 entered = 0, made = 0, frames = 0, reported = 0;
    for (u64 seed = 1; seed <= seeds(90); ++seed) {
        CAPTURE(seed);
        reentry_options o;
        o.plan = reentry_plan(seed);
        o.seed = seed;
        o.damage = {seed % 2 == 0, seed % 4 == 1, seed % 3 == 0};
        o.made_once = seed % 2 == 1;
        const reentry_outcome r = run_with_rebuilds(o);
        INFO("lost " << r.lost << " repeated " << r.repeated << " torn " << r.torn << " stuck " << r.stuck
                     << " " << r.finding);
        REQUIRE(r.sound());
        if (!o.damage.memory && !o.damage.headers) CHECK(r.reported == 0);
        reported += r.reported;
        entered += r.entered, made += r.made, frames += o.frames;
    }
    INFO("entered " << entered << " made " << made << " of " << frames);
    CHECK(entered > 0);
    CHECK(reported > 0);
    CHECK(made >= frames);
}

namespace {

/// source -> middle, which has a state -> sink: three frames are made, the middle has passed two on, the sink
/// one.
struct three_states {
    static constexpr u32 states = 2;
    static ring::plan plan() {
        ring::plan p = chain_of_three();
        p.stages[1].more = {{"middle.state", 0, 256}};
        p.stages[1].state = true;
        return p;
    }
    bench old, fresh;
    std::set<std::pair<u32, u32>> damaged;
    explicit three_states(const ring::plan& p = plan()) : old(p), fresh(p) {
        seated source = old.sit(0), middle = old.sit(1), sink = old.sit(2);
        for (u32 k = 0; k < 3; ++k) pass(*source.w);
        pass(*middle.w);
        const u32 slot = slot_of(states, 0);
        shm::link_block& ring = old.c->link[states];
        const u64 tail = ring.tail.load(), word = slot == shm::none ? 0 : ring.slot[slot].load();
        pass(*middle.w);
        pass(*sink.w);
        // As if the middle had died before it swept its states: the older one is still there.
        if (slot == shm::none) return;
        ring.slot[slot].store(word);
        old.c->frames[states].header[slot].ring_sequence.store(0);
        ring.tail.store(tail);
    }
    [[nodiscard]] u32 slot_of(u32 link, u64 number) const {
        for (u32 k = 0; k < old.c->link[link].slots; ++k)
            if (old.slot(link, k).state == ring::slot_state::ready &&
                old.c->frames[link].header[k].ring_sequence.load() == number)
                return k;
        return shm::none;
    }
    void damage(u32 link, u64 number) { damaged.insert({link, slot_of(link, number)}); }
    kept_frames rebuild(u64 first = 1) {
        kept_frames kept = ring::find_kept_frames(
            *old.c, *fresh.c, {first, 10, {0, 0, first, first}, {}},
            [&](u32 link, u32 slot) -> std::optional<device::status_word> {
                if (damaged.contains({link, slot})) return std::nullopt;
                const shm::frame_header& h = old.c->frames[link].header[slot];
                return device::status_word{h.ring_sequence.load(), h.epoch,
                                           static_cast<u32>(device::status_state::ready)};
            });
        if (kept.without_state == shm::none) ring::enter_frames(*fresh.c, *old.c, kept, 1);
        return kept;
    }
};

}  // namespace

TEST_CASE("a stage with a state continues from its newest state, which enters below the tail") {
    three_states run;
    const u32 newest = run.slot_of(three_states::states, 1);
    const kept_frames kept = run.rebuild();
    CHECK(kept.done_below == std::vector<u64>{3, 2, 1});
    CHECK(kept.tail == std::vector<u64>{2, 1, 2});
    CHECK(kept.state == std::vector<u32>{shm::none, shm::none, newest});
    CHECK(kept.without_state == shm::none);
    const seated middle = run.fresh.sit(1);
    ring::job j;
    REQUIRE(middle.w->begin(j, 0) == ring::outcome::ok);
    CHECK(j.ring_sequence == 2);
    CHECK(j.previous.index == newest);
    CHECK(j.previous_epoch == run.old.c->frames[three_states::states].header[newest].epoch);
}

TEST_CASE("a state that nothing proves is computed again from the one before it") {
    three_states run;
    SECTION("its status word differs") { run.damage(three_states::states, 1); }
    SECTION("it is the copy of a tombstone, and its status word differs") {
        const u32 slot = run.slot_of(three_states::states, 1);
        shm::frame_header& h = run.old.c->frames[three_states::states].header[slot];
        h.meta.tombstone_stage = 0;
        ring::seal(h, run.old.c->parameters.bytes);
        REQUIRE(h.meta.is_tombstone());
        run.damage(three_states::states, 1);
    }
    SECTION("its frame has no proof, so both are made again") { run.damage(1, 1); }
    const kept_frames kept = run.rebuild();
    CHECK(kept.done_below == std::vector<u64>{1, 1, 1});
    CHECK(kept.without_state == shm::none);
    CHECK(kept.state[three_states::states] == run.slot_of(three_states::states, 0));
    CHECK(kept.lost().empty());
}

TEST_CASE("a frame whose state is gone is lost alone, and the states after it continue") {
    three_states run;
    ring::link_ref(*run.old.c, three_states::states).sweep();
    REQUIRE(run.slot_of(three_states::states, 0) == shm::none);
    run.damage(1, 1);
    const kept_frames kept = run.rebuild();
    CHECK(kept.done_below == std::vector<u64>{3, 2, 1});
    CHECK(kept.lost() == std::vector<u64>{1});
}

TEST_CASE("a frame that a stage with a state can't repeat is lost to its other reader as well") {
    ring::plan p = three_states::plan();
    p.stages.push_back({"other", {0}, false, 1, 1});
    three_states run(p);
    ring::link_ref(*run.old.c, three_states::states).sweep();
    REQUIRE(run.slot_of(three_states::states, 0) == shm::none);
    run.damage(0, 1);
    const kept_frames kept = run.rebuild();
    CHECK(kept.lost() == std::vector<u64>{1});
    CHECK(kept.done_below[0] == 3);
}

TEST_CASE("no frame enters if no state is in memory from which a stage could continue") {
    three_states run;
    run.damage(three_states::states, 1);
    SECTION("none at all") {
        run.damage(three_states::states, 0);
        CHECK(run.rebuild().without_state == 1);
        // unless the run begins there
        CHECK(run.rebuild(0).without_state == shm::none);
    }
    SECTION("none after the frame that the sink lacks") { CHECK(run.rebuild(2).without_state == 1); }
}

TEST_CASE("a sink with a state gets the frame again whose state nothing proves") {
    ring::plan p = chain_of_three();
    p.stages[2].has_output = p.stages[2].state = true;
    three_states run(p);
    const u32 newest = run.slot_of(three_states::states, 0);
    SECTION("its state is proved") {
        const kept_frames kept = run.rebuild();
        CHECK(kept.done_below == std::vector<u64>{3, 2, 1});
        CHECK(kept.tail == std::vector<u64>{2, 1, 1});
        CHECK(kept.state == std::vector<u32>{shm::none, shm::none, newest});
        const seated sink = run.fresh.sit(2);
        ring::job j;
        REQUIRE(sink.w->begin(j, 0) == ring::outcome::ok);
        CHECK(j.ring_sequence == 1);
        CHECK(j.previous.index == newest);
    }
    SECTION("its state is damaged") {
        run.damage(three_states::states, 0);
        CHECK(run.rebuild().without_state == 2);
        const kept_frames kept = run.rebuild(0);
        CHECK(kept.without_state == shm::none);
        CHECK(kept.done_below[2] == 0);
    }
}

TEST_CASE("histories with rebuilds compute each state from the one before it") {
    u64 entered = 0, ended = 0, reported = 0;
    for (u64 seed = 1; seed <= seeds(90); ++seed) {
        CAPTURE(seed);
        reentry_options o;
        o.plan = reentry_plan(seed);
        o.seed = seed;
        o.state = true;
        o.damage = {seed % 2 == 0, seed % 4 == 1, seed % 3 == 0};
        o.made_once = seed % 5 == 1;
        o.sink_state = !o.made_once && seed % 4 > 1;
        const reentry_outcome r = run_with_rebuilds(o);
        INFO("lost " << r.lost << " repeated " << r.repeated << " torn " << r.torn << " stuck " << r.stuck
                     << " " << r.finding);
        REQUIRE(r.sound());
        if (!o.damage.memory && !o.damage.headers) CHECK(r.reported + (r.ended ? 1 : 0) == 0);
        reported += r.reported;
        entered += r.entered, ended += r.ended ? 1 : 0;
    }
    INFO("entered " << entered << " reported " << reported << " ended " << ended);
    CHECK(entered > 0);
    CHECK(reported > 0);
    CHECK((ended > 0 && ended < seeds(90) / 2));
}
