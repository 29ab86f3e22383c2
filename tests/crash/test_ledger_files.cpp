// The report's figures, computed again from the ledger files that it names, by other code than the supervisor's.
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "telemetry/ledger.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

TEST_CASE("lost, repeated and image_hash of the report follow from the ledger file alone") {
    constexpr u64 frames = 600;
    run_fixture run;
    run.start(run.pipeline("ledgers", picture_pipeline("ledgers", "fps = 300\n")), {"--frames", std::to_string(frames)});
    REQUIRE(run.wait_running());
    for (int k = 0; k < 20 && run.running(); ++k) {
        run.hit(k % 2 == 0 ? "display" : "fragment", SIGKILL);
        sleep_s(0.06);
    }
    REQUIRE(run.wait(60) == 0);
    const json report = run.report();
    const json sink = report["sinks"][0];
    std::ifstream in(run.path(sink["ledger"].get<std::string>()), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    REQUIRE(bytes.size() == frames * 32);

    u64 lost = 0, repeated = 0;
    std::vector<u64> hashes;
    for (u64 n = 0; n < frames; ++n) {  // {u64 sequence + 1, u64 hash, u32 flags, u32 times, u64 epoch}, little-endian
        u64 sequence_plus_1 = 0, hash = 0;
        u32 times = 0;
        std::memcpy(&sequence_plus_1, bytes.data() + n * 32, 8);
        std::memcpy(&hash, bytes.data() + n * 32 + 8, 8);
        std::memcpy(&times, bytes.data() + n * 32 + 20, 4);
        lost += sequence_plus_1 == n + 1 ? 0 : 1;
        repeated += times;
        hashes.push_back(hash);
    }
    CHECK(report["lost"] == lost);
    CHECK(report["repeated"] == repeated);
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(telemetry::hash_bytes(std::as_bytes(std::span(hashes)))));
    CHECK(report["image_hash"] == text);
}
