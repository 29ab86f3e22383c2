#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "device/cpu/pool.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using device::cpu::pool;

TEST_CASE("a parallel loop visits every index exactly once and names its threads") {
    for (const unsigned threads : {1U, 2U, 5U}) {
        pool p(threads);
        REQUIRE(p.size() == threads);
        for (const u64 count : {0ULL, 1ULL, 7ULL, 64ULL, 10'007ULL}) {
            for (const u64 grain : {1ULL, 3ULL, 64ULL, 100'000ULL}) {
                std::vector<std::atomic<u32>> seen(count);
                std::atomic<u32> wrong{0};
                p.parallel_for(count, grain, [&](u64 begin, u64 end, unsigned worker) {
                    if (worker >= threads || end - begin > grain || begin >= end) ++wrong;
                    for (u64 i = begin; i < end; ++i) ++seen[i];
                });
                REQUIRE(wrong == 0);
                u64 not_once = 0;
                for (u64 i = 0; i < count; ++i) not_once += seen[i] != 1 ? 1 : 0;
                REQUIRE(not_once == 0);
            }
        }
    }
}

TEST_CASE("ranges of one loop run at the same time on different threads") {
    pool p(2);
    std::atomic<int> inside{0};
    // Each range waits for the other: on one thread this would never end.
    p.parallel_for(2, 1, [&](u64, u64, unsigned) {
        ++inside;
        while (inside < 2) std::this_thread::yield();
    });
    REQUIRE(inside == 2);
}

TEST_CASE("the first exception of a loop is rethrown and the pool continues") {
    pool p(3);
    const auto fails = [](u64 begin, u64, unsigned) {
        if (begin == 40) throw std::runtime_error("at 40");
    };
    REQUIRE_THROWS_WITH(p.parallel_for(100, 1, fails), "at 40");
    std::atomic<u64> sum{0};
    p.parallel_for(10, 2, [&](u64 begin, u64 end, unsigned) {
        for (u64 i = begin; i < end; ++i) sum += i;
    });
    REQUIRE(sum == 45);
}

TEST_CASE("an idle pool uses no CPU time") {
    pool p(4);
    p.parallel_for(64, 1, [](u64, u64, unsigned) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const u64 before = process_cpu_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    REQUIRE(process_cpu_ns() - before < 5 * ns_per_ms);
}
