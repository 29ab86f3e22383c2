#include <memory>

#include "telemetry/histogram.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("a bucket holds its durations and the next begins where it ends") {
    u32 before = 0;
    for (u64 ns = 1; ns < 4'000'000'000'000ULL; ns = ns + ns / 7 + 1) {
        const u32 b = telemetry::bucket_of(ns);
        REQUIRE(b < shm::latency_buckets);
        REQUIRE(b >= before);
        REQUIRE(ns < telemetry::upper_ns(b));
        if (b > 0) REQUIRE(ns >= telemetry::upper_ns(b - 1));
        before = b;
    }
}

TEST_CASE("percentiles are right within an eighth") {
    const auto buckets = std::make_unique<shm::word[]>(shm::latency_buckets);
    for (u64 us = 1; us <= 10'000; ++us) telemetry::add_sample(buckets.get(), us * 1000);
    CHECK(telemetry::percentile_ms(buckets.get(), 0.5) == Approx(5.0).epsilon(0.13));
    CHECK(telemetry::percentile_ms(buckets.get(), 0.99) == Approx(9.9).epsilon(0.13));
}

TEST_CASE("no samples give zero, and a maximum only rises") {
    const auto buckets = std::make_unique<shm::word[]>(shm::latency_buckets);
    CHECK(telemetry::percentile_ms(buckets.get(), 0.5) == 0.0);
    shm::word top{5};
    telemetry::raise_to(top, 3);
    CHECK(top.load() == 5);
    telemetry::raise_to(top, 9);
    CHECK(top.load() == 9);
}
