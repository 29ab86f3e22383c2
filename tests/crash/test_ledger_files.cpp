// The report's figures, recomputed from the ledger files that it names, by code independent of the
// supervisor's.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "ledger/ledger.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

TEST_CASE("lost, repeated and image_hash of the report follow from only the ledger file") {
    constexpr u64 frames = 600;
    run_fixture run;
    run.start(run.pipeline("ledgers", picture_pipeline("ledgers", "fps = 300\n")),
              {"--frames", std::to_string(frames)});
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
    REQUIRE(bytes.size() == frames * sizeof(telemetry::ledger_record));

    u64 lost = 0, repeated = 0;
    std::vector<u64> hashes;
    for (u64 n = 0; n < frames; ++n) {  // {u64 sequence + 1, recorded hash, u32 flags, writer; committer,
                                        // commits, u64 hash, u32 flags, 0}
        u64 sequence_plus_1 = 0, hash = 0;
        u32 committer = 0, commits = 0;
        std::memcpy(&sequence_plus_1, bytes.data() + n * sizeof(telemetry::ledger_record), 8);
        std::memcpy(&hash, bytes.data() + n * sizeof(telemetry::ledger_record) + 32, 8);
        std::memcpy(&committer, bytes.data() + n * sizeof(telemetry::ledger_record) + 24, 4);
        std::memcpy(&commits, bytes.data() + n * sizeof(telemetry::ledger_record) + 28, 4);
        lost += sequence_plus_1 == n + 1 && committer != 0 ? 0 : 1;
        repeated += (commits & 0x7FFF'FFFFU) - 1;
        hashes.push_back(hash);
    }
    CHECK(report["lost"] == lost);
    CHECK(report["repeated"] == repeated);
    char text[17];
    std::snprintf(text, sizeof text, "%016llx",
                  static_cast<unsigned long long>(telemetry::hash_bytes(std::as_bytes(std::span(hashes)))));
    CHECK(report["image_hash"] == text);
}

TEST_CASE("a long run's ledger is folded during the run, across deaths, with the same result") {
    constexpr u64 frames = 24'000;
    run_fixture run;
    const std::string file =
        run.pipeline("long", number_pipeline("long", "fps = 4000\nsupervisor_grace_s = 20\n"));
    const std::vector<std::string> words{"--frames", std::to_string(frames)},
        hook{"CAROUSEL_TEST_KEEP_RECORDS=1000"};
    const std::string ledger = run.path("runtime/carousel/long/ledger-sink.bin");
    const auto space = [](const std::string& path) {
        struct stat s {};
        return ::stat(path.c_str(), &s) == 0 ? static_cast<u64>(s.st_blocks) * 512 : 0;
    };
    run.start(file, words, hook);
    REQUIRE(run.wait_running());
    REQUIRE(run.wait_until([&] { return space(ledger + ".folded") > 0; }, 40));
    run.hit("sink", SIGKILL);
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
    run.start(file, words, hook);
    u64 most = 0;
    while (run.running()) {
        most = std::max(most, space(ledger));
        sleep_s(0.05);
    }
    REQUIRE(run.wait() == 0);
    INFO(run.log());
    const json r = run.report(), sink = r["sinks"][0];
    CHECK(sink["records"] == frames);
    CHECK(sink["folded"].get<u64>() >= frames / 2);
    // a second's frames, the thousand that are kept, and one step of the fold
    CHECK(most < frames * sizeof(telemetry::ledger_record) * 3 / 4);
    CHECK(space(run.path(sink["ledger"].get<std::string>())) <
          frames * sizeof(telemetry::ledger_record) * 3 / 4);
    CHECK(r["lost"] == 0);
    CHECK(r["repeated"] == 0);
    std::vector<u64> hashes;
    for (u64 n = 0; n < frames; ++n) {
        const u64 value = (n * 1000 * 3 + 1) * 3 + 1;
        hashes.push_back(telemetry::hash_bytes(std::as_bytes(std::span(&value, 1))));
    }
    char text[17];
    std::snprintf(text, sizeof text, "%016llx",
                  static_cast<unsigned long long>(telemetry::hash_bytes(std::as_bytes(std::span(hashes)))));
    CHECK(r["image_hash"] == text);
    CHECK(run.leftovers() == "");
}
