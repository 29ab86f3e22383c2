#include "ipc/queue.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "ipc/words.hpp"
#include "ipc/work_queue.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::ipc;

TEST_CASE("an owner word keeps its count, epoch and state at their maximum values") {
    const cell_word w{count_mask, epoch_mask, cell_state::lost};
    CHECK(cell_word::of(w.pack()) == w);
    CHECK(cell_word::of(cell_word{count_mask + 5, epoch_mask, cell_state::free}.pack()).count == 4);
    CHECK(cell_word{}.pack() == 0);  // fresh memory is free
    const task_word t{~u32{0}, most_attempts, epoch_mask, task_state::reading};
    CHECK(task_word::of(t.pack()) == t);
    CHECK(task_word{}.pack() == 0);
}

TEST_CASE("rounds are distinguished by their distance, even when counts wrap around") {
    CHECK(round_of(7, 7) == 0);
    CHECK(round_of(8, 7) == 1);
    CHECK(round_of(6, 7) == -1);
    CHECK(round_of(0, count_mask) == 1);
    CHECK(round_of(count_mask, 0) == -1);
}

TEST_CASE("a loss found again by the next repair counts once, a later one at its place counts again") {
    word tally{0};
    count_once<cpu_words>(tally, 0, 0);
    count_once<cpu_words>(tally, 0, 0);  // the holder had died after the count
    CHECK(counted(tally) == 1);
    count_done<cpu_words>(tally);
    count_once<cpu_words>(tally, 0, u64{1} << 16U);  // 65,536 rounds later: its mark looks the same
    CHECK(counted(tally) == 2);
    count_once<cpu_words>(tally, 1, 0);
    CHECK(counted(tally) == 3);
}

TEST_CASE("a deadline never wraps around, and a sleep after it returns at once") {
    CHECK(deadline_after(~u64{0}) == ~u64{0});
    shm::doorbell_word bell{};
    CHECK_FALSE(sleep_until(bell, shm::ticket(bell), clock_ns()));
    CHECK(sleep_until(bell, shm::ticket(bell), deadline_after(1'000'000)));
}

TEST_CASE("every step has a unique name") {
    for (u32 a = 0; a < steps; ++a)
        for (u32 b = 0; b < a; ++b) CHECK(name_of(static_cast<step>(a)) != name_of(static_cast<step>(b)));
    CHECK(name_of(step::repair_done) == "repair_done");
    CHECK(name_of(step::count_) == "?");
}
