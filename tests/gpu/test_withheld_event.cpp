// The producer's event is recorded at once, and its work is held back on the device: no process may take the
// frame meanwhile.
#include <fmt/format.h>

#include "tests/gpu/gpu_run.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// Seconds between the source's enqueueing of frame 40 and the middle stage's taking it.
f64 delivered_after_ms(const std::string& memory, int hold_ms, const std::string& hash) {
    run_fixture run;
    device_keys keys;
    keys.pipeline = "fps = 200\n";
    keys.memory = memory;
    keys.source = fmt::format("hold_at = 40\nhold_ms = {}\n", hold_ms);
    keys.middle = "hold_at = 40\n";
    run.start(run.pipeline("withheld", device_pipeline("withheld", keys)), {"--frames", "200"});
    CHECK(run.wait() == 0);
    const std::string log = run.log();
    INFO(log);
    const json r = run.report();
    REQUIRE(r.contains("image_hash"));
    CHECK(r["image_hash"] == hash);
    CHECK(r["torn"] == 0);
    CHECK(r["restarts"] == 0);
    const u64 made = taken_at(log, "numbers", 40), taken = taken_at(log, "middle", 40),
              next = taken_at(log, "middle", 41);
    REQUIRE(made != 0);
    REQUIRE(taken > made);
    CHECK(next > taken);  // and no frame overtakes it
    return static_cast<f64>(taken - made) / 1e9;
}

}  // namespace

TEST_CASE("a withheld event blocks only its consumer") {
    const std::string hash = undisturbed_device_hash(200);
    for (const char* memory : {"vmm", "ipc"}) {
        CAPTURE(memory);
        const f64 held = delivered_after_ms(memory, 800, hash), free = delivered_after_ms(memory, 0, hash);
        fmt::print(
            "{}: a frame whose event is withheld for 800 ms is taken after {:.0f} ms, one that is not after "
            "{:.1f} ms\n",
            memory, held * 1e3, free * 1e3);
        CHECK(held >= 0.8);
        CHECK(held < 1.2);
        CHECK(free < 0.2);
    }
}
