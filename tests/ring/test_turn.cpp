// The token of turns on a GPU: which seat takes it, which one is next, and what a death or a stop leaves of
// it.
#include "ring/turn.hpp"

#include <memory>
#include <random>
#include <vector>

#include "shm/doorbell.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using ring::turn;
using ring::turn_kind;
using ring::turn_word;
using taking = ring::turn::taking;

namespace {

constexpr u64 ms = 1'000'000;

/// `seats` stages of one seat each, and one GPU.
struct shared_gpu {
    std::unique_ptr<shm::control_block> c = std::make_unique<shm::control_block>();
    std::vector<turn> seat;
    u64 now = 1000 * ms;

    explicit shared_gpu(u32 seats) { begin(seats); }
    /// Restarts in the same block: creating a block takes longer than all that a history does with it.
    void begin(u32 seats) {
        c->turn[3].token.store(0);
        c->turn[3].wanted.store(0);
        c->stages = c->seats = seats;
        now = 1000 * ms;
        seat.clear();
        for (u32 k = 0; k < seats; ++k) c->seat[k].stage = k;
        for (u32 k = 0; k < seats; ++k) seat.emplace_back(*c, 3, k);
    }
    [[nodiscard]] turn_word token() const { return turn_word::of(c->turn[3].token.load()); }
    [[nodiscard]] u64 wanted() const { return c->turn[3].wanted.load(); }
    [[nodiscard]] u32 rings(u32 k) const { return shm::ticket(c->stage[k].doorbell); }
    taking take(u32 k, u32 limit_us = 10'000) { return seat[k].take(now, limit_us); }
};

}  // namespace

TEST_CASE("a turn's word keeps its fields") {
    const turn_word w{turn_kind::held, 63, 20'000, (u64{1} << 40U) - 1};
    CHECK(turn_word::of(w.pack()) == w);
    CHECK(turn_word{}.pack() == 0);
}

TEST_CASE("a token is late after its limit, also when the clock's field wraps around") {
    const u64 start = GENERATE(u64{5'000}, (u64{1} << 40U) - 500);
    const turn_word w = turn_word::of(turn_word{turn_kind::held, 1, 2'000, start}.pack());
    CHECK(w.left_us(start) == 2'000);
    CHECK(w.left_us(start + 1'500) == 500);
    CHECK(w.left_us(start + 2'000) == 0);
    CHECK(w.left_us(start + 90'000) == 0);
    CHECK(w.left_us(start - 3) == 2'000);  // written after this process has read the clock
}

TEST_CASE("a free token is taken, and a held one is not") {
    shared_gpu g(2);
    CHECK(g.take(0) == taking::yes);
    CHECK(g.token() == turn_word{turn_kind::held, 0, 10'000, g.now / 1000});
    CHECK(g.take(1) == taking::no);
    CHECK(g.wanted() == 0b10);
    CHECK(g.token().seat == 0);
    CHECK(g.seat[0].has_waiters());
    CHECK_FALSE(g.seat[1].has_waiters());
}

TEST_CASE("a turn passes cyclically to the next seat that requests it, and rings its doorbell") {
    shared_gpu g(4);
    REQUIRE(g.take(2) == taking::yes);
    for (const u32 k : {0U, 1U, 3U}) REQUIRE(g.take(k) == taking::no);
    u32 holder = 2;
    for (const u32 next : {3U, 0U, 1U}) {
        const u32 before = g.rings(next);
        g.seat[holder].pass_on(g.now);
        CHECK(g.token().kind == turn_kind::offered);
        CHECK(g.token().seat == next);
        CHECK(g.rings(next) != before);
        for (u32 other = 0; other < 4; ++other)
            if (other != next && other != holder && (g.wanted() >> other & 1U) != 0)
                CHECK(g.take(other) == taking::no);
        CHECK(g.take(next) == taking::yes);
        CHECK((g.wanted() >> next & 1U) == 0);
        holder = next;
    }
    g.seat[holder].pass_on(g.now);
    CHECK(g.token().kind == turn_kind::free);
}

TEST_CASE("a silent holder's token is taken over after its limit, and it gets no offer") {
    shared_gpu g(3);
    REQUIRE(g.take(0, 5'000) == taking::yes);
    REQUIRE(g.take(1) == taking::no);
    CHECK(g.seat[1].patience_ns(g.now) == 5 * ms);
    g.now += 4 * ms;
    CHECK(g.take(1) == taking::no);
    g.now += 1 * ms;
    CHECK(g.take(1) == taking::from_late);
    CHECK(g.token().seat == 1);
    g.seat[0].pass_on(g.now);  // the waiter wakes up
    CHECK(g.token() == turn_word{turn_kind::held, 1, 10'000, g.now / 1000});
    CHECK_FALSE(g.seat[0].renew(g.now, 5'000));

    // An offer that is not taken: seat 2 has died since its request.
    REQUIRE(g.take(2) == taking::no);
    g.seat[1].pass_on(g.now);
    REQUIRE(g.token().kind == turn_kind::offered);
    REQUIRE(g.take(0) == taking::no);
    g.now += ring::offer_us * 1000;
    CHECK(g.take(0) == taking::from_late);
    CHECK(g.wanted() == 0);
    g.seat[0].pass_on(g.now);
    CHECK(g.token().kind == turn_kind::free);
}

TEST_CASE("a successor takes the token that its predecessor on the seat has left") {
    shared_gpu g(2);
    REQUIRE(g.take(0) == taking::yes);
    g.now += 1 * ms;
    CHECK(turn(*g.c, 3, 0).take(g.now, 7'000) == taking::yes);
    CHECK(g.token() == turn_word{turn_kind::held, 0, 7'000, g.now / 1000});
}

TEST_CASE("a holder that no other seat waits for keeps the token for another limit") {
    shared_gpu g(2);
    REQUIRE(g.take(0, 5'000) == taking::yes);
    g.now += 4 * ms;
    CHECK(g.seat[0].renew(g.now, 5'000));
    g.now += 4 * ms;
    CHECK(g.take(1) == taking::no);
}

TEST_CASE("a seat that can begin no more frames is skipped") {
    shared_gpu g(3);
    REQUIRE(g.take(0) == taking::yes);
    REQUIRE(g.take(1) == taking::no);
    REQUIRE(g.take(2) == taking::no);
    g.seat[1].cancel_wait();
    g.seat[0].pass_on(g.now);
    CHECK(g.token().seat == 2);
}

TEST_CASE("a waiting seat gets the token within the longest limit, for any content of its word") {
    std::mt19937_64 random(20261124);
    shared_gpu g(3);
    for (int round = 0; round < 2'000; ++round) {
        g.begin(3);
        g.c->turn[3].token.store(random());
        g.c->turn[3].wanted.store(random());
        taking got = g.take(1);
        for (int k = 0; got == taking::no && k < 3; ++k) {
            g.now += g.seat[1].patience_ns(g.now);
            got = g.take(1);
        }
        CAPTURE(round);
        REQUIRE(got != taking::no);
        g.seat[1].pass_on(g.now);
        REQUIRE(g.token().kind != turn_kind::held);
    }
}

// Each live seat requests the token again and again. Some die or stop while they have it, or while it is
// offered to them. A flipped bit gives the token to an arbitrary seat or to none, for as long as its fields
// can express: it is not repaired.
TEST_CASE("in random histories every live seat gets its turn within a limit") {
    constexpr u64 longest_lie = 2 * 65'536 * u64{1000};  // a limit of 16 bits in us, and as far in the future
    const bool flips = GENERATE(false, true);
    CAPTURE(flips);
    shared_gpu g(2);
    for (u64 seed = 1; seed <= (flips ? 100U : 300U); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        const u32 seats = 2 + static_cast<u32>(random() % 5);
        g.begin(seats);
        enum class phase { rests, wants, holds, silent };
        std::vector<phase> is(seats, phase::rests);
        std::vector<u64> since(seats, 0), until(seats, 0);
        u64 turns = 0, late = 0, flipped_at = 0;
        // Every seat before it may hold the token for one limit, or let an offer and a turn expire.
        const u64 bound = u64{seats} * (ring::longest_turn_us + ring::offer_us) * 1000 + 2 * ms;
        for (u32 step = 0; step < (flips ? 40'000U : 4'000U); ++step) {
            g.now += 100'000;
            const u32 k = static_cast<u32>(random() % seats);
            switch (is[k]) {
                case phase::rests:
                    is[k] = phase::wants, since[k] = g.now;
                    [[fallthrough]];
                case phase::wants:
                    if (const taking t = g.take(k, 2'000 + static_cast<u32>(random() % 18'000));
                        t != taking::no) {
                        ++turns, late += t == taking::from_late ? 1 : 0;
                        is[k] = phase::holds;
                    }
                    REQUIRE(g.now <= std::max(since[k], flipped_at) + bound);
                    break;
                case phase::holds:
                    if (random() % 3 == 0) g.seat[k].pass_on(g.now), is[k] = phase::rests;
                    break;
                case phase::silent:
                    if (g.now >= until[k]) is[k] = phase::rests;
                    break;
            }
            if (flips && random() % 4'000 == 0) {
                (random() % 2 == 0 ? g.c->turn[3].token : g.c->turn[3].wanted)
                    .fetch_xor(u64{1} << random() % 64);
                flipped_at = g.now + longest_lie;
            }
            if (random() % 200 == 0) is[k] = phase::silent, until[k] = g.now + random() % (60 * ms);
        }
        CHECK(turns > (flips ? 10 : 100));
        CHECK((late > 0 || flips));
    }
}
