#include "ipc/work_queue.hpp"

#include <utility>

#include "shm/doorbell.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::zeroed;

namespace {
struct made {
    zeroed<work_queue_block> b;
    explicit made(u32 capacity, u32 attempts) : b(work_queue_block::bytes(capacity, sizeof(u64))) {
        b->make(capacity, sizeof(u64), attempts);
    }
    work_queue of(u32 epoch) { return {*b, epoch}; }
    task_name submit(u64 value) {
        const auto name = of(1).try_submit(&value);
        REQUIRE(name);
        return *name;
    }
    claimed_task claim(u32 epoch) {
        u64 value = 0;
        const auto t = of(epoch).try_claim(&value);
        REQUIRE(t);
        return *t;
    }
};
}  // namespace

TEST_CASE("a task is claimed once and committed once, by the claiming incarnation") {
    made m(4, 3);
    const task_name name = m.submit(5);
    CHECK(m.of(2).fate(name) == task_fate::waiting);
    const claimed_task t = m.claim(2);
    CHECK(m.of(2).fate(name) == task_fate::claimed);
    CHECK(m.of(3).claimers() == std::vector<u32>{2});
    u64 value = 0;
    CHECK_FALSE(m.of(3).try_claim(&value));
    CHECK_FALSE(m.of(3).commit(t));
    CHECK(m.of(2).commit(t));
    CHECK_FALSE(m.of(2).commit(t));
    CHECK(m.of(2).fate(name) == task_fate::over);
}

TEST_CASE("a task whose workers fail or die max_attempts times is a dead letter, read once") {
    made m(2, 3);
    const task_name name = m.submit(42);
    CHECK(m.of(2).fail(m.claim(2)));
    CHECK(m.claim(3).attempts == 1);
    repair(*m.b, 3);
    repair(*m.b, 3);
    CHECK(m.claim(4).attempts == 2);
    repair(*m.b, 4);
    CHECK(m.of(5).fate(name) == task_fate::dead_letter);
    u64 value = 0;
    CHECK_FALSE(m.of(5).try_claim(&value));
    REQUIRE(m.of(5).take_dead_letter(&value));
    CHECK(value == 42);
    CHECK_FALSE(m.of(5).take_dead_letter(&value));
    CHECK(m.of(5).count(task_state::free) == 2);
}

TEST_CASE("a partly submitted task leaves its place free, a partly read dead letter remains") {
    made m(1, 1);
    m.b->place()[0].store(task_word{0, 0, 9, task_state::filling}.pack());
    const u64 value = 1;
    CHECK_FALSE(m.of(1).try_submit(&value));
    repair(*m.b, 9);
    const task_name name = m.submit(2);
    CHECK(m.of(3).fail(m.claim(3)));
    m.b->place()[0].store(task_word{name.generation, 1, 9, task_state::reading}.pack());
    repair(*m.b, 9);
    CHECK(m.of(1).fate(name) == task_fate::dead_letter);
}

TEST_CASE("a waiting claim ends at its timeout, and the search skips no task") {
    made m(3, 2);
    u64 value = 0;
    CHECK_FALSE(m.of(2).claim(&value, 5'000'000));
    for (u64 k = 0; k < 3; ++k) (void)m.submit(k);
    u64 seen = 0;
    for (int k = 0; k < 3; ++k) {
        const auto t = m.of(2).try_claim(&value);
        REQUIRE(t);
        seen |= u64{1} << value;
        CHECK(m.of(2).commit(*t));
    }
    CHECK(seen == 7);
}

TEST_CASE("an expired claim does not commit the task that now has its place") {
    made m(1, 3);
    const task_name first = m.submit(1);
    const claimed_task old = m.claim(2);
    CHECK(m.of(2).commit(old));
    const task_name second = m.submit(2);
    CHECK(second.place == first.place);
    CHECK(m.of(2).fate(first) == task_fate::over);
    const claimed_task now = m.claim(2);
    CHECK_FALSE(m.of(2).commit(old));
    CHECK_FALSE(m.of(2).fail(old));
    CHECK(m.of(2).fate(second) == task_fate::claimed);
    CHECK(m.of(2).commit(now));
}

TEST_CASE("a repair does not change the cells that live clients fill, have claimed and read") {
    made m(3, 1);
    m.b->place()[0].store(task_word{0, 0, 4, task_state::filling}.pack());
    const task_name name = m.submit(2);
    const claimed_task t = m.claim(2);
    m.b->place()[2].store(task_word{0, 1, 5, task_state::reading}.pack());
    repair(*m.b, 9);
    CHECK(m.of(2).fate(name) == task_fate::claimed);
    CHECK(m.of(2).count(task_state::filling) == 1);
    CHECK(m.of(2).count(task_state::reading) == 1);
    CHECK(m.of(2).commit(t));
}

TEST_CASE("submitting, committing or failing a task wakes its waiters") {
    made m(2, 3);
    u32 seen = shm::ticket(m.b->bell);
    const auto rung = [&] { return std::exchange(seen, shm::ticket(m.b->bell)) != shm::ticket(m.b->bell); };
    (void)m.submit(1);
    CHECK(rung());
    CHECK(m.of(2).fail(m.claim(2)));
    CHECK(rung());
    CHECK(m.of(2).commit(m.claim(2)));
    CHECK(rung());
    repair(*m.b, 9);
    CHECK(rung());
}
