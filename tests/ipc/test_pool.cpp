#include "ipc/give.hpp"
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
    void mend_all(u32 dead) {
        mend(*cells, dead);
        std::vector<block_ref> named;
        gather_named(*cells, named);
        mend(*b, dead, named);
    }
};
}  // namespace

TEST_CASE("blocks lie beside each other, first fit, and their offsets say where") {
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
    CHECK(m.of(3).use().largest_free == 3);  // the fourth lies alone
    CHECK_FALSE(m.of(3).try_acquire(4));
    CHECK(m.of(3).try_acquire(3)->unit == 7);
}

TEST_CASE("sizes are whole units, and what is too large is refused without a look") {
    made m(4);
    CHECK(m.of(1).units_for(0) == 1);
    CHECK(m.of(1).units_for(4096) == 1);
    CHECK(m.of(1).units_for(4097) == 2);
    CHECK(m.of(1).units_for(~u64{0} / 2) == 5);
    CHECK_FALSE(m.of(1).try_acquire(5));
    CHECK_FALSE(m.of(1).acquire(5, 2'000'000));
    CHECK(m.of(1).use().free == 4);
}

TEST_CASE("a mend frees whole, half claimed and half freed blocks of the dead one and nobody else's") {
    made m(12);
    REQUIRE(m.of(9).try_acquire(2));
    const auto kept = m.of(1).try_acquire(2);
    m.b->unit()[4].store(unit_word{50, 9, unit_state::claiming}.pack());
    m.b->unit()[5].store(unit_word{4, 0, unit_state::body}.pack());
    m.b->unit()[8].store(unit_word{51, 9, unit_state::leaving}.pack());
    m.b->unit()[9].store(unit_word{8, 0, unit_state::body}.pack());
    m.mend_all(9);
    m.mend_all(9);
    CHECK(m.of(1).use().free == 10);
    CHECK(m.of(1).owners() == std::vector<u32>{1});
    CHECK(m.of(1).release(*kept));
}

TEST_CASE("a block that is given belongs to its cell, and then to who receives it") {
    made m(4);
    pool giver = m.of(1), receiver = m.of(2);
    queue in = m.cells_of(1), out = m.cells_of(2);
    const auto k = giver.try_acquire(3);
    block_ref e;
    REQUIRE(try_give(giver, *k, in, &e));
    CHECK(giver.use().given == 1);
    CHECK_FALSE(giver.release(*k));
    m.mend_all(1);  // the giver's death is none of its business
    const auto got = try_receive(out, receiver, &e);
    REQUIRE(got);
    CHECK(got->units == 3);
    CHECK(receiver.release(*got));
    CHECK(receiver.use().free == 4);
}

TEST_CASE("a giver that dies between the cell and the block's word has given it") {
    made m(4);
    pool giver = m.of(1);
    const auto k = giver.try_acquire(2);
    const block_ref r = giver.name(*k);
    REQUIRE(m.cells_of(1).try_push(&r));
    m.mend_all(1);
    CHECK(giver.use().given == 1);
    pool receiver = m.of(2);
    queue out = m.cells_of(2);
    block_ref e;
    const auto got = try_receive(out, receiver, &e);
    REQUIRE(got);
    CHECK_FALSE(giver.hand_over(r));  // too late
    CHECK(receiver.release(*got));
}

TEST_CASE("a receiver that dies before its commit leaves the block to the cell, and another one gets it") {
    made m(4);
    pool giver = m.of(1), first = m.of(2), second = m.of(3);
    queue in = m.cells_of(1), out = m.cells_of(2), again = m.cells_of(3);
    block_ref e;
    REQUIRE(try_give(giver, *giver.try_acquire(1), in, &e));
    REQUIRE(out.try_lease(&e));
    REQUIRE(first.take(e));
    m.mend_all(2);
    const auto got = try_receive(again, second, &e);
    REQUIRE(got);
    CHECK(second.release(*got));
}

TEST_CASE("a cell that names no block is told apart from an empty queue") {
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
