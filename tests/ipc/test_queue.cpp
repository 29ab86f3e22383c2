#include <thread>
#include <utility>

#include "ipc/queue.hpp"
#include "ipc/step.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::zeroed;

namespace {
struct made {
    zeroed<queue_block> b;
    explicit made(u32 capacity) : b(queue_block::bytes(capacity, sizeof(u64))) {
        b->make(capacity, sizeof(u64));
    }
    typed_queue<u64> of(u32 epoch) { return {*b, epoch}; }
    // The state of a cell whose producer or consumer died at its claim.
    void leave(u32 k, cell_state s, u32 epoch) {
        const u64 lap = cell_word::of(load(b->cell()[k])).count;
        b->cell()[k].store(cell_word{lap, epoch, s}.pack());
    }
    // A repair whose holder dies at that step.
    void repair_cut_off_at(u32 dead, step there) {
        struct died {};
        static step deadly;
        deadly = there;
        set_hooks({.at = [](step s) {
            if (s == deadly) throw died{};
        }});
        CHECK_THROWS_AS(repair(*b, dead), died);
        set_hooks({});
    }
};
}  // namespace

TEST_CASE("elements keep their order over many laps, and a full queue admits no more") {
    made m(3);
    auto q = m.of(1);
    u64 next = 0, got = 0;
    for (int lap = 0; lap < 50; ++lap) {
        while (q.try_push(next)) ++next;
        CHECK(q.bytes().size() == 3);
        for (int k = 0; k < 2; ++k) {
            u64 value = 0;
            REQUIRE(q.try_pop(value));
            CHECK(value == got++);
        }
    }
}

TEST_CASE("bulk functions push and pop as many elements as there is room for") {
    made m(4);
    const u64 in[] = {1, 2, 3, 4, 5, 6};
    u64 out[6] = {};
    CHECK(m.of(1).try_push(in, 6) == 4);
    CHECK(m.of(2).try_pop(out, 6) == 4);
    CHECK(out[3] == 4);
}

TEST_CASE("a leased element belongs only to its holder, and is delivered again when returned") {
    made m(4);
    REQUIRE(m.of(1).try_push(7));
    REQUIRE(m.of(1).try_push(8));
    u64 a = 0, b = 0;
    const auto first = m.of(2).try_lease(a), second = m.of(3).try_lease(b);
    REQUIRE(first);
    REQUIRE(second);
    CHECK((a == 7 && b == 8));
    CHECK_FALSE(m.of(3).commit(*first));
    CHECK(m.of(2).bytes().requeue(*first));
    CHECK(m.of(3).commit(*second));
    CHECK_FALSE(m.of(3).commit(*second));
    REQUIRE(m.of(4).try_pop(a));
    CHECK(a == 7);
    CHECK_FALSE(m.of(4).try_pop(a));
}

TEST_CASE("a claimed cell blocks the line, its claimer is named, and the repair makes it a tomb") {
    made m(4);
    m.leave(0, cell_state::claimed, 9);
    REQUIRE(m.of(1).try_push(5));  // after it
    u64 value = 0;
    CHECK_FALSE(m.of(2).try_pop(value));
    CHECK(m.of(2).bytes().claimers() == std::vector<u32>{9});
    repair(*m.b, 9);
    repair(*m.b, 9);
    CHECK(m.of(2).bytes().tombs() == 1);
    REQUIRE(m.of(2).try_pop(value));
    CHECK(value == 5);
    const u64 in[] = {1, 2, 3, 4};
    CHECK(m.of(1).try_push(in, 4) == 4);  // the capacity is unchanged
}

TEST_CASE("an element popped by a dead process is counted, a leased one is delivered again") {
    made m(4);
    const u64 in[] = {1, 2};
    REQUIRE(m.of(1).try_push(in, 2) == 2);
    m.leave(0, cell_state::popping, 9);
    m.leave(1, cell_state::leased, 9);
    repair(*m.b, 9);
    CHECK(m.of(2).bytes().lost() == 1);
    u64 value = 0;
    REQUIRE(m.of(2).try_pop(value));
    CHECK(value == 2);
}

TEST_CASE("a repair does not change the claimed, popped and leased elements of live clients") {
    made m(4);
    const u64 in[] = {1, 2};
    REQUIRE(m.of(1).try_push(in, 2) == 2);
    u64 value = 0;
    const auto held = m.of(2).try_lease(value);
    REQUIRE(held);
    m.leave(1, cell_state::popping, 3);
    m.leave(2, cell_state::claimed, 4);
    repair(*m.b, 9);
    CHECK(m.of(2).bytes().lost() == 0);
    CHECK(m.of(2).bytes().tombs() == 0);
    CHECK(m.of(2).bytes().claimers() == std::vector<u32>{4});
    CHECK(m.of(2).commit(*held));
}

TEST_CASE("publishing, consuming or returning a cell wakes its waiters") {
    made m(4);
    u32 seen = shm::ticket(m.b->bell);
    const auto rung = [&] { return std::exchange(seen, shm::ticket(m.b->bell)) != shm::ticket(m.b->bell); };
    u64 value = 0;
    REQUIRE(m.of(1).try_push(1));
    CHECK(rung());
    const auto held = m.of(2).try_lease(value);
    REQUIRE(held);
    CHECK_FALSE(rung());
    CHECK(m.of(2).bytes().requeue(*held));
    CHECK(rung());
    REQUIRE(m.of(2).try_pop(value));
    CHECK(rung());
    repair(*m.b, 9);
    CHECK(rung());
}

TEST_CASE("a loss counted by an interrupted repair is not counted again after another loss") {
    made m(4);
    m.leave(0, cell_state::claimed, 8);
    m.leave(1, cell_state::claimed, 9);
    m.repair_cut_off_at(9, step::loss_counted);
    CHECK(m.of(1).bytes().tombs() == 1);
    repair(*m.b, 8);
    repair(*m.b, 9);
    CHECK(m.of(1).bytes().tombs() == 2);
    REQUIRE(m.of(1).try_push(5));
    m.leave(2, cell_state::popping, 7);
    REQUIRE(m.of(1).try_push(6));
    m.leave(3, cell_state::popping, 6);
    m.repair_cut_off_at(6, step::loss_counted);
    repair(*m.b, 7);
    repair(*m.b, 6);
    CHECK(m.of(1).bytes().lost() == 2);
    const u64 in[] = {1, 2, 3, 4};
    CHECK(m.of(1).try_push(in, 4) == 4);  // no cell is still marked
}

TEST_CASE("an interrupted repair's count hides no loss at the same cell in a later round") {
    made m(1);
    m.leave(0, cell_state::claimed, 8);
    m.repair_cut_off_at(8, step::word_repaired);  // the cell is free, and the tally still knows it
    repair(*m.b, 8);
    m.b->cell()[0].store(
        cell_word{u64{1} << 16U, 9, cell_state::claimed}.pack());  // its round looks the same
    repair(*m.b, 9);
    CHECK(m.of(1).bytes().tombs() == 2);
}

TEST_CASE("many producers that died at their claims hide no later element") {
    made m(3);
    for (u32 epoch = 10; epoch < 40; ++epoch) {
        const u64 t = load(m.b->tail);  // as claim() does, up to its death
        m.leave(static_cast<u32>(t % 3), cell_state::claimed, epoch);
        m.b->tail.store(t + 1);
        repair(*m.b, epoch);
    }
    REQUIRE(m.of(1).try_push(5));
    u64 value = 0;
    REQUIRE(m.of(2).try_pop(value));
    CHECK(value == 5);
}

TEST_CASE("threads pass every element exactly once, in order per producer") {
    made m(8);
    constexpr u64 each = 2000;
    std::vector<u64> seen[2];
    std::vector<std::thread> all;
    for (u32 p = 0; p < 2; ++p)
        all.emplace_back([&, p] {
            for (u64 k = 0; k < each; ++k) {
                const u64 value = u64{p} << 32U | k;
                if (!m.of(p + 1).bytes().push(&value, 60'000'000'000)) return;
            }
        });
    for (u32 c = 0; c < 2; ++c)
        all.emplace_back([&, c] {
            for (u64 k = 0; k < each; ++k) {
                u64 value = 0;
                if (!m.of(c + 3).bytes().pop(&value, 60'000'000'000)) return;
                seen[c].push_back(value);
            }
        });
    for (std::thread& t : all) t.join();
    u64 sum = 0;
    for (const auto& s : seen) {
        u64 last[2] = {};
        for (const u64 v : s) {
            CHECK((v & 0xFFFFFFFFU) + 1 > last[v >> 32U]);
            last[v >> 32U] = (v & 0xFFFFFFFFU) + 1;
            sum += v & 0xFFFFFFFFU;
        }
    }
    CHECK(seen[0].size() + seen[1].size() == 2 * each);
    CHECK(sum == each * (each - 1));
}
