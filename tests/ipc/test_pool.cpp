#include "ipc/pool.hpp"

#include <utility>

#include "ipc/step.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::zeroed;

namespace {
struct made {
    zeroed<pool_block> b;
    zeroed<queue_block> cells;
    explicit made(u32 units) : b(pool_block::bytes(units)), cells(queue_block::bytes(2, sizeof(block_ref))) {
        b->make(units, 4096, 65536);
        cells->make(2, sizeof(block_ref), 1);
    }
    pool of(u32 epoch) { return {*b, epoch}; }
    queue cells_of(u32 epoch) { return {*cells, epoch}; }
    void repair_all(u32 dead) {
        repair(*cells, dead);
        std::vector<block_ref> named;
        gather_named(*cells, named);
        repair(*b, dead, named);
    }
};

// Something that another one does, or a death, at the n-th pass of a step.
struct intervention {
    static inline step there{};
    static inline int passes = 0;
    static inline void (*does)() = nullptr;
    intervention(step s, int nth, void (*what)()) {
        there = s, passes = nth, does = what;
        set_hooks({.at = [](step now) {
            if (now == there && --passes == 0) does();
        }});
    }
    ~intervention() { set_hooks({}); }
};
struct died {};
}  // namespace

TEST_CASE("blocks are placed next to each other, first fit, at their offsets") {
    made m(10);
    const auto a = m.of(1).try_acquire(3), b = m.of(2).try_acquire(4);
    REQUIRE(a);
    REQUIRE(b);
    CHECK(m.of(1).offset(*a) == 65536);
    CHECK(m.of(2).offset(*b) == 65536 + 3 * 4096);
    CHECK(m.of(1).release(*a));
    CHECK_FALSE(m.of(1).release(*a));
    CHECK(m.of(3).try_acquire(2)->unit == 0);
    CHECK(m.of(3).use().free == 4);
    CHECK(m.of(3).use().largest_free == 3);  // the fourth is isolated
    CHECK_FALSE(m.of(3).try_acquire(4));
    CHECK(m.of(3).try_acquire(3)->unit == 7);
}

TEST_CASE("sizes are whole units, and a too large request is refused without a search") {
    made m(4);
    CHECK(m.of(1).units_for(0) == 1);
    CHECK(m.of(1).units_for(4096) == 1);
    CHECK(m.of(1).units_for(4097) == 2);
    CHECK(m.of(1).units_for(~u64{0} / 2) == 5);
    CHECK_FALSE(m.of(1).try_acquire(5));
    CHECK_FALSE(m.of(1).acquire(5, 2'000'000));
    CHECK(m.of(1).use().free == 4);
}

TEST_CASE("a repair frees complete, partly claimed and partly freed blocks of only the dead client") {
    made m(12);
    REQUIRE(m.of(9).try_acquire(2));
    const auto kept = m.of(1).try_acquire(2);
    m.b->unit()[4].store(unit_word{50, 9, unit_state::claiming}.pack());
    m.b->unit()[5].store(unit_word{4, 0, unit_state::body}.pack());
    m.b->unit()[8].store(unit_word{51, 9, unit_state::leaving}.pack());
    m.b->unit()[9].store(unit_word{8, 0, unit_state::body}.pack());
    m.repair_all(9);
    m.repair_all(9);
    CHECK(m.of(1).use().free == 10);
    CHECK(m.of(1).owners() == std::vector<u32>{1});
    CHECK(m.of(1).release(*kept));
}

TEST_CASE("a sent block belongs to its cell, and then to its receiver") {
    made m(4);
    pool giver = m.of(1), receiver = m.of(2);
    queue in = m.cells_of(1), out = m.cells_of(2);
    const auto k = giver.try_acquire(3);
    block_ref e;
    REQUIRE(try_send(giver, *k, in, &e));
    CHECK(giver.use().in_queue == 1);
    CHECK_FALSE(giver.release(*k));
    m.repair_all(1);  // the giver's death does not affect it
    const auto got = try_receive(out, receiver, &e);
    REQUIRE(got);
    CHECK(got->units == 3);
    CHECK(receiver.release(*got));
    CHECK(receiver.use().free == 4);
}

TEST_CASE("a sender that dies between the cell and the block's word has sent the block") {
    made m(4);
    pool giver = m.of(1);
    const auto k = giver.try_acquire(2);
    const block_ref r = giver.name(*k);
    REQUIRE(m.cells_of(1).try_push(&r));
    m.repair_all(1);
    CHECK(giver.use().in_queue == 1);
    pool receiver = m.of(2);
    queue out = m.cells_of(2);
    block_ref e;
    const auto got = try_receive(out, receiver, &e);
    REQUIRE(got);
    CHECK_FALSE(giver.transfer(r));  // too late
    CHECK(receiver.release(*got));
}

TEST_CASE("a receiver that dies before its commit leaves the block to the cell for another one") {
    made m(4);
    pool giver = m.of(1), first = m.of(2), second = m.of(3);
    queue in = m.cells_of(1), out = m.cells_of(2), again = m.cells_of(3);
    block_ref e;
    REQUIRE(try_send(giver, *giver.try_acquire(1), in, &e));
    REQUIRE(out.try_lease(&e));
    REQUIRE(first.take(e));
    m.repair_all(2);
    const auto got = try_receive(again, second, &e);
    REQUIRE(got);
    CHECK(second.release(*got));
}

TEST_CASE("a cell that names no block is distinguished from an empty queue") {
    made m(4);
    pool receiver = m.of(2);
    queue out = m.cells_of(2);
    block_ref e{77, 1, 2};
    bool damaged = true;
    CHECK_FALSE(try_receive(out, receiver, &e, &damaged));
    e = {77, 1, 2};
    REQUIRE(out.try_push(&e));
    damaged = false;
    CHECK_FALSE(try_receive(out, receiver, &e, &damaged));
    CHECK(damaged);
}

TEST_CASE("two claims of the same room collide at one unit, and the later one returns its part") {
    static made* m = nullptr;
    static std::optional<block> other;
    made mine(7);
    m = &mine, other.reset();
    std::optional<block> got;
    {
        // When the first unit is claimed, another one takes the second and third.
        const intervention i(step::head_claimed, 1, [] {
            const unit_word w{400, 2, unit_state::owned};
            m->b->unit()[1].store(w.pack());
            m->b->unit()[2].store(unit_word{1, 0, unit_state::body}.pack());
            other = block{1, 2, 400};
        });
        got = m->of(1).try_acquire(3);
    }
    REQUIRE(got);
    CHECK(got->unit == 3);
    CHECK(m->of(1).use().free == 2);
    CHECK(m->of(1).release(*got));
    CHECK(m->of(2).release(*other));
    CHECK(m->of(1).use().free == 7);
}

TEST_CASE("a claim or release interrupted by a death is completed by the repair") {
    made m(4);
    const auto cut_off = [&](step there, int nth) {
        const intervention i(there, nth, [] { throw died{}; });
        const auto k = m.of(1).try_acquire(4);
        if (k) (void)m.of(1).release(*k);
    };
    for (const step there : {step::head_claimed, step::body_claimed, step::block_owned, step::block_leaving,
                             step::body_freed, step::block_freed})
        for (int nth = 1; nth <= (there == step::body_claimed || there == step::body_freed ? 3 : 1); ++nth) {
            INFO(name_of(there) << " " << nth);
            CHECK_THROWS_AS(cut_off(there, nth), died);
            m.repair_all(1);
            CHECK(m.of(1).use().free == 4);
        }
}

TEST_CASE("the name of a released block matches no later block at the same place") {
    made m(2);
    const auto first = m.of(1).try_acquire(2);
    REQUIRE(first);
    CHECK(m.of(1).release(*first));
    REQUIRE(m.of(1).try_acquire(2));
    CHECK_FALSE(m.of(1).release(*first));
    CHECK(m.of(1).use().free == 0);
}

TEST_CASE("a cell whose block has a new owner takes no block from that owner") {
    made m(4);
    REQUIRE(m.of(1).try_acquire(2));
    CHECK_FALSE(m.of(2).take({0, 500, 501}));
    CHECK(m.of(2).owners() == std::vector<u32>{1});
}

TEST_CASE("a block without room in the queue remains its sender's") {
    made m(4);
    pool giver = m.of(1);
    queue in = m.cells_of(1);
    block_ref e;
    REQUIRE(try_send(giver, *giver.try_acquire(1), in, &e));
    REQUIRE(try_send(giver, *giver.try_acquire(1), in, &e));
    const auto k = giver.try_acquire(1);
    CHECK_FALSE(try_send(giver, *k, in, &e));
    CHECK(giver.use().in_queue == 2);
    CHECK(giver.release(*k));
}

TEST_CASE("a receiver frees the cell, and the queue has room again") {
    made m(4);
    pool giver = m.of(1), receiver = m.of(2);
    queue in = m.cells_of(1), out = m.cells_of(2);
    block_ref e;
    for (int k = 0; k < 6; ++k) {
        REQUIRE(try_send(giver, *giver.try_acquire(1), in, &e));
        const auto got = try_receive(out, receiver, &e);
        REQUIRE(got);
        CHECK(out.leasers().empty());
        CHECK(receiver.release(*got));
    }
}

TEST_CASE("a sender that dies while a receiver has leased its cell has sent the block") {
    made m(4);
    pool giver = m.of(1), receiver = m.of(2);
    const block_ref r = giver.name(*giver.try_acquire(2));
    REQUIRE(m.cells_of(1).try_push(&r));
    block_ref e;
    queue out = m.cells_of(2);
    const auto leased = out.try_lease(&e);
    REQUIRE(leased);
    m.repair_all(1);
    const auto got = receiver.take(e);
    REQUIRE(got);
    CHECK(got->units == 2);
    CHECK(out.commit(*leased));
    CHECK(receiver.release(*got));
}

TEST_CASE("freeing a block wakes its waiters") {
    made m(2);
    u32 seen = shm::ticket(m.b->bell);
    const auto rung = [&] { return std::exchange(seen, shm::ticket(m.b->bell)) != shm::ticket(m.b->bell); };
    const auto k = m.of(1).try_acquire(2);
    CHECK_FALSE(rung());
    CHECK(m.of(1).release(*k));
    CHECK(rung());
    m.repair_all(9);
    CHECK(rung());
}
