#include "stages/runner/depth_governor.hpp"

#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::stages;

namespace {
constexpr u64 us = 1000;
}

TEST_CASE("a frame's cost counts from the wait for other contexts' turns") {
    for (const u64 depth : {u64{3}, u64{14}}) {
        work_meter m;
        u64 now = 1'000'000 * us;
        for (u64 frame = 0; frame < 210; ++frame) {
            const u64 began = now;
            now += frame % depth == 0 ? 700 * us : 50 * us;
            m.add(began - 500 * us, began, now);
        }
        CHECK(m.read(now) == 50 * us);
    }
}

TEST_CASE("a frame that is submitted while the thread waits counts from there") {
    work_meter m;
    m.add(900 * us, 100 * us, 930 * us);
    CHECK(m.read(1000 * us) == 30 * us);
}

TEST_CASE("a reading is due after a fill of frames, or after a quarter of a second with one") {
    work_meter m;
    CHECK(m.read(1) == 0);
    CHECK_FALSE(m.due(10'000'000 * us));
    m.add(0, 0, 5);
    CHECK_FALSE(m.due(2));
    CHECK(m.due(250'000 * us + 1));
    CHECK(m.read(2) == 5);
    for (int k = 0; k < 63; ++k) m.add(0, 0, 5);
    CHECK_FALSE(m.due(3));
    m.add(0, 7, 7);  // if the clock does not advance, the frame still has work
    CHECK(m.due(3));
    CHECK(m.read(4) > 0);
}

TEST_CASE("older frames are forgotten") {
    work_meter m;
    for (int k = 0; k < 64; ++k) m.add(0, 0, 900 * us);
    for (int k = 0; k < 64; ++k) m.add(0, 0, 20 * us);
    CHECK(m.read(1) == 20 * us);
}
