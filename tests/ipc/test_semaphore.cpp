#include <thread>

#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::zeroed;

namespace {
struct made {
    zeroed<semaphore_block> b;
    explicit made(u32 permits, u32 line = 8) : b(semaphore_block::bytes(permits, line)) {
        b->make(permits, line);
    }
    semaphore of(u32 epoch) { return {*b, epoch}; }
};
}  // namespace

TEST_CASE("as many permits are out as there are, and a released one goes to the next") {
    made m(2);
    const auto a = m.of(1).try_acquire(), b = m.of(2).try_acquire();
    REQUIRE(a);
    REQUIRE(b);
    CHECK_FALSE(m.of(3).try_acquire());
    CHECK(m.of(3).holders() == std::vector<u32>{1, 2});
    CHECK(m.of(1).release(*a));
    CHECK_FALSE(m.of(1).release(*a));
    CHECK_FALSE(m.of(3).release(*b));  // another's
    CHECK(m.of(3).try_acquire());
}

TEST_CASE("who waits gets the permit that is released meanwhile, and long before its time is over") {
    made m(1);
    const auto held = m.of(1).try_acquire();
    std::thread other([&] {
        while (m.of(3).waiting() == 0) std::this_thread::yield();
        (void)m.of(1).release(*held);
    });
    CHECK(m.of(2).acquire(60'000'000'000));
    other.join();
    CHECK(m.of(3).holders() == std::vector<u32>{2});
}

TEST_CASE("a wait ends at its time and leaves no ticket") {
    made m(1);
    const auto held = m.of(1).try_acquire();
    CHECK_FALSE(m.of(2).acquire(20'000'000));
    CHECK(m.of(2).waiting() == 0);
    CHECK(m.of(1).release(*held));
}

TEST_CASE("a full line takes nobody in, and who has left it makes room in any order") {
    made m(1, 2);
    const auto held = m.of(1).try_acquire();
    m.b->place()[1].store(line_word{0, 7, line_state::waiting}.pack());  // two that rest in the line
    m.b->place()[0].store(line_word{1, 8, line_state::waiting}.pack());
    CHECK(m.of(1).release(*held));
    CHECK_FALSE(m.of(2).acquire(5'000'000));
    CHECK(m.of(2).waiting() == 2);
    mend(*m.b, 8);
    mend(*m.b, 7);
    CHECK(m.of(2).try_acquire());
}

TEST_CASE("a mend gives back what the dead one had and nothing else, as often as it is repeated") {
    made m(3);
    REQUIRE(m.of(1).try_acquire());
    REQUIRE(m.of(2).try_acquire());
    REQUIRE(m.of(1).try_acquire());
    for (int twice = 0; twice < 2; ++twice) {
        mend(*m.b, 1);
        CHECK(m.of(9).free_permits() == 2);
        CHECK(m.of(9).holders() == std::vector<u32>{2});
    }
}

TEST_CASE("threads that share one permit never have it together") {
    made m(1, 16);
    int inside = 0, most = 0, turns = 0;
    std::vector<std::thread> all;
    for (u32 t = 1; t <= 4; ++t)
        all.emplace_back([&, t] {
            for (int k = 0; k < 200; ++k) {
                const auto p = m.of(t).acquire(60'000'000'000);
                if (!p) return;
                most = std::max(most, ++inside);
                ++turns;
                --inside;
                (void)m.of(t).release(*p);
            }
        });
    for (std::thread& t : all) t.join();
    CHECK(most == 1);
    CHECK(turns == 800);
}
