// When a runner may begin a frame, and when its turn is passed on.
#include "stages/runner/gpu_turn.hpp"

#include <memory>

#include "core/clock.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using ring::turn_kind;
using ring::turn_word;
using stages::gpu_turn;

namespace {

struct two_stages {
    std::unique_ptr<shm::control_block> c = std::make_unique<shm::control_block>();
    two_stages() {
        c->stages = c->seats = 2;
        c->seat[1].stage = 1;
    }
    [[nodiscard]] turn_word token() const { return turn_word::of(c->turn[0].token.load()); }
    [[nodiscard]] u64 taken(u32 stage) const { return c->stage[stage].counters.turns.load(); }
    [[nodiscard]] u64 taken_over(u32 stage) const { return c->stage[stage].counters.late_turns.load(); }
};

/// Constant: no machine's load makes a turn of these tests late.
u64 clock_of_test() noexcept { return 1'000'000'000; }

constexpr u64 long_frame_ns = 10'000'000;  // nothing is passed on early except the last one

}  // namespace

TEST_CASE("a turn has all frames in flight, but of long frames no more than fill it") {
    constexpr u64 ms = 1'000'000;
    CHECK(stages::frames_of_a_turn(16, 0) == 16);
    CHECK(stages::frames_of_a_turn(16, ms / 5) == 16);
    CHECK(stages::frames_of_a_turn(16, ms) == 8);
    CHECK(stages::frames_of_a_turn(8, 3 * ms) == 3);
    CHECK(stages::frames_of_a_turn(8, 20 * ms) == 1);
    CHECK(stages::frames_of_a_turn(1, ~u64{0} / 2) == 1);
}

TEST_CASE("a stage without a token begins whenever it likes") {
    two_stages s;
    gpu_turn free(*s.c, shm::none, 0);
    free.set(4, 1000);
    for (int k = 0; k < 100; ++k) {
        CHECK(free.may_begin());
        free.submitted();
    }
    CHECK(s.token().kind == turn_kind::free);
    CHECK(s.taken(0) == 0);
}

TEST_CASE("a turn has N frames and is passed on when all but the last few are complete") {
    two_stages s;
    gpu_turn first(*s.c, 0, 0, clock_of_test), second(*s.c, 0, 1, clock_of_test);
    first.set(4, long_frame_ns);
    second.set(4, long_frame_ns);
    for (int k = 0; k < 4; ++k) {
        REQUIRE(first.may_begin());
        first.submitted();
    }
    CHECK_FALSE(second.may_begin());
    CHECK_FALSE(first.may_begin());  // the other runner waits
    for (int k = 0; k < 2; ++k) first.complete();
    CHECK(s.token().kind == turn_kind::held);
    first.complete();  // one is left, which hides the other's wake-up
    CHECK(s.token().kind == turn_kind::offered);
    CHECK(s.token().seat == 1);
    CHECK(second.may_begin());
    first.complete();
    CHECK(s.token().seat == 1);
    CHECK(s.taken(0) == 1);
    CHECK(s.taken(1) == 1);
    CHECK(s.taken_over(0) + s.taken_over(1) == 0);
}

TEST_CASE("short frames are passed on earlier, by half a turn at most") {
    two_stages s;
    gpu_turn first(*s.c, 0, 0, clock_of_test), second(*s.c, 0, 1, clock_of_test);
    first.set(8, 1'000);
    for (int k = 0; k < 8; ++k) {
        REQUIRE(first.may_begin());
        first.submitted();
    }
    second.set(8, 1'000);
    CHECK_FALSE(second.may_begin());
    for (int k = 0; k < 3; ++k) first.complete();
    CHECK(s.token().kind == turn_kind::held);
    first.complete();
    CHECK(s.token().kind == turn_kind::offered);
}

TEST_CASE("a turn closes as soon as no frame can begin") {
    two_stages s;
    gpu_turn first(*s.c, 0, 0, clock_of_test), second(*s.c, 0, 1, clock_of_test);
    first.set(4, long_frame_ns);
    second.set(4, long_frame_ns);
    REQUIRE(first.may_begin());
    first.submitted();
    REQUIRE_FALSE(second.may_begin());
    CHECK(s.token().kind == turn_kind::held);
    first.on_idle();
    CHECK(s.token().kind == turn_kind::offered);
    first.complete();
    first.on_idle();
    CHECK(s.token().seat == 1);
}

TEST_CASE("a turn restarts if no other stage wants it") {
    two_stages s;
    gpu_turn only(*s.c, 0, 0);
    only.set(2, long_frame_ns);
    for (int k = 0; k < 6; ++k) {
        REQUIRE(only.may_begin());
        only.submitted();
    }
    CHECK(s.token().kind == turn_kind::held);
    only.on_idle();
    for (int k = 0; k < 6; ++k) only.complete();
    CHECK(s.token().kind == turn_kind::free);
}

TEST_CASE("turns of 0 frames pass on the held frames and accept no further ones") {
    two_stages s;
    gpu_turn first(*s.c, 0, 0);
    first.set(4, 0);
    REQUIRE(first.may_begin());
    first.submitted();
    REQUIRE(s.token().kind == turn_kind::held);
    first.set(0, 0);
    CHECK(s.token().kind == turn_kind::free);
    CHECK(first.may_begin());
    CHECK(s.token().kind == turn_kind::free);
    first.complete();
}

TEST_CASE("a holder that is silent loses its turn after its limit, which is between 2 and 20 ms") {
    two_stages s;
    gpu_turn first(*s.c, 0, 0), second(*s.c, 0, 1);
    first.set(1, 1'000);  // two turns of 0.1 ms
    second.set(1, 1'000);
    const u64 began = now_ns();
    REQUIRE(first.may_begin());
    first.submitted();
    CHECK(s.token().limit_us == ring::least_turn_us);
    while (!second.may_begin()) {
        REQUIRE(second.patience_ns() <= u64{ring::least_turn_us} * 1000);
        REQUIRE(now_ns() - began < 10'000'000'000);
    }
    CHECK(now_ns() - began >= u64{ring::least_turn_us} * 1000 - 2000);
    CHECK(s.taken_over(1) == 1);
    first.complete();  // it wakes up: the turn no longer belongs to it
    CHECK(s.token().seat == 1);
    second.set(16, 0);
    gpu_turn third(*s.c, 1, 0);
    third.set(16, 50'000'000);
    REQUIRE(third.may_begin());
    CHECK(turn_word::of(s.c->turn[1].token.load()).limit_us == ring::longest_turn_us);
}
