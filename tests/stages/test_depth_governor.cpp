// The choice of a depth from only measured figures.
#include "stages/runner/depth_governor.hpp"

#include <algorithm>
#include <utility>

#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;
using telemetry::depth_reason;

namespace {

constexpr u64 us = 1000;

depth_rule automatic(device_sharing how, u32 contexts = 1) {
    depth_rule r;
    r.sharing = how;
    r.lanes_given = r.window_given = false;
    r.contexts = contexts;
    return r;
}

/// The final depth if every update reports the same figures.
telemetry::depth_view settled(const depth_rule& r, u64 work_ns, u32 lanes = 16, u32 window = 18) {
    depth_governor g(r, lanes, window);
    for (int k = 0; k < 12; ++k) (void)g.update(work_ns);
    return g.now();
}

}  // namespace

TEST_CASE("where contexts take turns a turn is made worth its switch, and no longer than that") {
    const depth_rule four = automatic(device_sharing::turns, 4);
    CHECK(settled(four, 66 * us).lanes == 14);
    CHECK(settled(four, 66 * us).why == depth_reason::turns);
    CHECK(settled(four, 66 * us).work_ns == 66 * us);
    CHECK(settled(four, 205 * us).lanes < 13);
    CHECK(settled(four, 20'000 * us).lanes == 2);  // one computed, one queued: never less
    CHECK(settled(four, 1).lanes == 16);
    u32 before = 16;
    for (u64 work = us; work < 100'000 * us; work *= 2) {
        const u32 lanes = settled(four, work).lanes;
        CHECK(lanes <= before);
        before = lanes;
    }
    CHECK(settled(automatic(device_sharing::turns, 2), 300 * us).lanes < settled(four, 300 * us).lanes);
}

TEST_CASE("frames in flight hide the latency to the next process, in an MPS domain or on an own GPU") {
    for (const auto how : {device_sharing::overlap, device_sharing::alone}) {
        CHECK(settled(automatic(how), 16 * us).lanes > 10);
        CHECK(settled(automatic(how), 1000 * us).lanes == 2);
        CHECK(settled(automatic(how), 16 * us).why == depth_reason::hops);
        CHECK(settled(automatic(how), 150 * us).lanes <
              settled(automatic(device_sharing::turns, 4), 150 * us).lanes);
    }
}

TEST_CASE("the output window is the number of frames in flight plus two, limited by its ring") {
    const depth_rule four = automatic(device_sharing::turns, 4);
    CHECK(settled(four, 66 * us).window == 16);
    CHECK(settled(four, 20'000 * us).window == 4);
    CHECK(settled(four, 1).window == 18);
    CHECK(settled(four, 1, 16, 5).window == 5);
    CHECK(settled(four, 20'000 * us, 16, 0).window == 0);  // a sink
    depth_rule given = four;
    given.window_given = true;
    CHECK(settled(given, 20'000 * us).window == 18);
}

TEST_CASE("fixed depths, latency settings, finish() threads and the CPU are as planned") {
    depth_rule given = automatic(device_sharing::turns, 4);
    given.lanes_given = true;
    depth_rule low = automatic(device_sharing::turns, 4), most = low;
    low.latency = latency_request::low;
    most.latency = latency_request::throughput;
    depth_rule packing = automatic(device_sharing::turns, 4);
    packing.finish_pool = true;
    const std::pair<depth_rule, depth_reason> all[] = {{given, depth_reason::given},
                                                       {low, depth_reason::requested},
                                                       {most, depth_reason::requested},
                                                       {packing, depth_reason::finishing},
                                                       {automatic(device_sharing::cpu), depth_reason::cores},
                                                       {depth_rule{}, depth_reason::given}};
    for (const auto& [rule, why] : all) {
        depth_governor g(rule, 9, 11);
        CHECK_FALSE(g.chooses());
        for (int k = 0; k < 12; ++k) CHECK_FALSE(g.update(20'000 * us));
        CHECK(g.now().lanes == 9);
        CHECK(g.now().window == 11);
        CHECK(g.now().why == why);
    }
}

TEST_CASE("no depth is chosen before the first measurement") {
    depth_governor g(automatic(device_sharing::turns, 4), 16, 18);
    CHECK(g.chooses());
    CHECK(g.now().why == depth_reason::unmeasured);
    for (int k = 0; k < 12; ++k) CHECK_FALSE(g.update(0));
    CHECK(g.now().lanes == 16);
    CHECK(g.now().why == depth_reason::unmeasured);
}

TEST_CASE("noise around a mean and single outliers do not change the depth") {
    depth_governor g(automatic(device_sharing::turns, 4), 16, 18);
    for (int k = 0; k < 3; ++k) (void)g.update(66 * us);
    REQUIRE(g.now().lanes == 14);
    for (int k = 0; k < 400; ++k) CHECK_FALSE(g.update((k % 2 == 0 ? 50 : 84) * us));
    for (int k = 0; k < 400; ++k)
        CHECK_FALSE(g.update(k % 3 == 2 ? 66 * us : 20'000 * us));  // never three in a row
    CHECK(g.now().lanes == 14);
}

TEST_CASE("a permanent change of frame time changes the depth at the third measurement, both ways") {
    depth_governor g(automatic(device_sharing::turns, 4), 16, 18);
    for (int k = 0; k < 3; ++k) (void)g.update(66 * us);
    CHECK_FALSE(g.update(20'000 * us));
    CHECK_FALSE(g.update(20'000 * us));
    CHECK(g.update(20'000 * us));
    CHECK(g.now().lanes == 2);
    CHECK_FALSE(g.update(66 * us));
    CHECK_FALSE(g.update(66 * us));
    CHECK(g.update(66 * us));
    CHECK(g.now().lanes == 14);
}

TEST_CASE("for any number of lanes, at least one is used") {
    for (const u32 lanes : {0U, 1U, 2U, 3U}) {
        const u32 got = settled(automatic(device_sharing::turns, 4), 20'000 * us, lanes, 1).lanes;
        CHECK(got >= 1);
        CHECK(got <= std::max(1U, lanes));
    }
}
