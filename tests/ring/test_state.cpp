// A stage with state: its last ring holds a state per frame, and each state is computed from the one before.

#include "core/errors.hpp"
#include "ring/check/repair.hpp"
#include "ring/header_check.hpp"
#include "run_with_flips.hpp"
#include "shm/sink.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {

plan counting() {
    plan p;
    p.stages = {{"source", {}, true}, {"counter", {0}, true}, {"sink", {1}, false}};
    p.stages[1].more = {{"counter.state", 0, 256}};
    p.stages[1].state = true;
    p.stages[1].window = 4;
    p.stages[1].more[0].window = 4;
    return p;
}

constexpr u32 state_link = 2;  ///< the link of the ring of states

job begin_frame(const seated& s, u32 in_flight = 0) {
    job j;
    REQUIRE(s.w->begin(j, in_flight) == outcome::ok);
    return j;
}

void complete_frame(const seated& s, job& j) {
    REQUIRE(s.w->submit(j));
    REQUIRE(s.w->commit(j));
    REQUIRE(s.w->complete(j));
}

outcome outcome_of(const seated& s) {
    u64 n = 0;
    return s.w->peek(0, n);
}

/// The numbers of the states in the ring, in order.
std::vector<u64> states_in(const bench& b) {
    std::vector<u64> numbers;
    for (u32 k = 0; k < b.c->link[state_link].slots; ++k)
        if (b.slot(state_link, k).state == slot_state::ready)
            numbers.push_back(b.c->frames[state_link].header[k].ring_sequence.load());
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

/// A stage that has made the state of frame 0, has died, and has a successor; its input has two more frames.
struct one_state {
    bench b{counting()};
    u32 index = 0;  ///< the slot of the state
    seated successor = make();
    [[nodiscard]] shm::word& slot() const { return b.c->link[state_link].slot[index]; }

private:
    seated make() {
        const seated source = b.sit(0), counter = b.sit(1);
        for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
        job first = begin_frame(counter);
        complete_frame(counter, first);
        index = first.output[1].index;
        return b.die(counter, blame::none, 0);
    }
};

}  // namespace

TEST_CASE("state: a frame continues from the state of the frame before, in flight or READY") {
    bench b(counting());
    const seated source = b.sit(0), counter = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    job first = begin_frame(counter);
    CHECK_FALSE(first.previous);
    CHECK(first.previous_epoch == shm::none);
    REQUIRE(counter.w->submit(first));
    job second = begin_frame(counter, 1);
    CHECK(second.previous.index == first.output[1].index);
    CHECK(second.previous_epoch == counter.incarnation.epoch);
    REQUIRE(counter.w->submit(second));
    const shm::frame_header& h = b.c->frames[state_link].header[second.output[1].index];
    CHECK(h.previous_epoch == counter.incarnation.epoch);
    CHECK(is_sealed(h, 0));
    const seated successor = b.die(counter, blame::none, 2);
    // Neither frame was committed, so the successor begins with the first.
    job again = begin_frame(successor);
    CHECK(again.ring_sequence == 0);
    CHECK_FALSE(again.previous);
    complete_frame(successor, again);
    job third = begin_frame(successor);
    CHECK(third.previous.index == again.output[1].index);
}

TEST_CASE("state: a successor continues from the last state that its predecessor has committed") {
    bench b(counting());
    const seated source = b.sit(0), counter = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    job first = begin_frame(counter);
    complete_frame(counter, first);
    CHECK(b.c->link[state_link].tail.load() == 1);  // its maker sweeps the ring
    const seated successor = b.die(counter, blame::none, 0);
    job second = begin_frame(successor);
    CHECK(second.ring_sequence == 1);
    CHECK(second.previous.index == first.output[1].index);
    CHECK(second.previous_epoch == counter.incarnation.epoch);
}

TEST_CASE("state: a successor waits for the frames that its predecessor still holds") {
    bench b(counting());
    const seated source = b.sit(0), counter = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    job first = begin_frame(counter);
    REQUIRE(counter.w->submit(first));
    REQUIRE(counter.w->commit(first));  // dies between S5 and S6
    doom(*b.c, counter.incarnation.entry);
    const incarnation_id next = appoint(*b.c, 1);
    worker successor(*b.c, next.seat, next.entry, next.epoch);
    job second;
    CHECK(successor.begin(second, 0) == outcome::empty);
    REQUIRE(revoke(*b.c, 1, counter.incarnation.epoch));  // does S6
    REQUIRE(successor.begin(second, 0) == outcome::ok);
    CHECK(second.ring_sequence == 1);
    CHECK(second.previous.index == first.output[1].index);
}

TEST_CASE("state: the state just below the tail is not freed, and its ring has one more slot") {
    plan without = counting();
    without.stages[1].state = false;
    bench b(counting()), plain(without);
    CHECK(b.c->link[state_link].slots == plain.c->link[state_link].slots + 1);
    CHECK(b.c->link[1].slots == plain.c->link[1].slots);
    const seated source = b.sit(0), counter = b.sit(1), sink = b.sit(2);
    for (u64 n = 0; n < 6; ++n) {
        CHECK(pass(*source.w) == n);
        CHECK(pass(*counter.w) == n);
        CHECK(pass(*sink.w) == n);
        link_ref(*b.c, state_link).sweep();
        CHECK(states_in(b) == std::vector<u64>{n});
    }
    CHECK((b.c->stage[1].flags & shm::stage_flag::owner_commits) != 0);
}

TEST_CASE("state: nothing begins while the previous state or its header is damaged") {
    const one_state run;
    shm::word& slot = run.slot();
    shm::frame_header& h = run.b.c->frames[state_link].header[run.index];
    const seated& successor = run.successor;
    CHECK(outcome_of(successor) == outcome::ok);
    slot.fetch_xor(1);
    CHECK(outcome_of(successor) == outcome::empty);
    slot.fetch_xor(1);
    h.ring_sequence.raw().fetch_xor(2);
    CHECK(outcome_of(successor) == outcome::empty);
    h.ring_sequence.raw().fetch_xor(2);
    h.epoch ^= 1;
    job none;
    CHECK(successor.w->begin(none, 0) == outcome::empty);
    h.epoch ^= 1;
    CHECK(successor.w->begin(none, 0) == outcome::ok);
}

TEST_CASE("state: a state that is gone is not taken for the first one") {
    const one_state run;
    run.slot().store(slot_word::of(load(run.slot())).freed().pack());
    CHECK(outcome_of(run.successor) == outcome::empty);
}

TEST_CASE("state: a stage that would miss frames or have several processes is refused") {
    const auto refused = [](auto change, const char* why) {
        plan p = counting();
        change(p.stages[1]);
        shm::private_block c = shm::make_private_block();
        CHECK_THROWS_WITH(initialise(*c, p), contains(why));
    };
    refused([](stage_plan& s) { s.instances = 2; }, "only one instance, not 2");
    refused([](stage_plan& s) { s.every = 2; }, "must get every frame");
    refused([](stage_plan& s) { s.optional = true; }, "must get every frame");
    refused([](stage_plan& s) { s.inputs.clear(), s.more.clear(); }, "no output in addition");
}

TEST_CASE("state: a sink has its states in its only ring, and its frames leave the run") {
    plan p = counting();
    p.stages.resize(2);
    p.stages[1].more.clear();
    bench b(p);
    CHECK(std::string(b.c->link[1].name) == "counter.state");
    CHECK(shm::is_sink(b.c->stage[1]));
    CHECK_FALSE(shm::is_sink(b.c->stage[0]));
    const seated source = b.sit(0), counter = b.sit(1);
    for (u64 n = 0; n < 3; ++n) CHECK(pass(*source.w) == n);
    job first = begin_frame(counter);
    complete_frame(counter, first);
    job second = begin_frame(counter);
    CHECK(second.previous.index == first.output[0].index);
    REQUIRE(counter.w->submit(second));
    const seated successor = b.die(counter, blame::none, 1);
    job again = begin_frame(successor);
    CHECK(again.ring_sequence == 1);
    CHECK(again.previous.index == first.output[0].index);
    // No process reads the states, so the stage keeps only the newest one.
    complete_frame(successor, again);
    job third = begin_frame(successor);
    complete_frame(successor, third);
    CHECK(b.c->link[1].tail.load() == 3);
    CHECK(b.slot(1, third.output[0].index).state == slot_state::ready);
    CHECK(b.slot(1, again.output[0].index).state == slot_state::free);
}

TEST_CASE("state: the tail of a ring of states is repaired after any bit flip") {
    run_in_hand r(counting());
    const seated source = r.sit(0), counter = r.sit(1);
    shm::word& tail = r.b.c->link[state_link].tail.raw();
    for (u32 frame = 0; frame < 3; ++frame) {
        (void)pass(*source.w);
        (void)pass(*counter.w);
        if (frame == 1) link_ref(*r.b.c, state_link).sweep();
        for (unsigned bit = 0; bit < 64; ++bit) {
            INFO("frame " << frame << " bit " << bit);
            const u64 truth = load(tail);
            // Of two tails between which each frame is READY, the lower one is taken.
            const auto value = r.flip(tail, bit);
            REQUIRE(value);
            r.write_back(*value);
            CHECK(shm::tail_word::unpack(*value) <= shm::tail_word::unpack(truth));
            CHECK(check_words(*r.b.c, *r.made, r.known).empty());
            tail.store(truth);
        }
    }
}
