// A recording is damaged between two runs. What the second run plays, and its exit code and log, account for
// each frame. Everyday faults of files alone: tests/stages/test_recording_damage.cpp.
#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "stages/recording/mcap/scan.hpp"
#include "tests/crash/recordings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
namespace mcap = carousel::stages::mcap;

constexpr u64 recorded_count = 12;

/// A run that is recorded, then played from a changed copy of the file.
struct damaged_run {
    run_fixture run;
    std::string bytes;
    mcap::contents contents;
    nlohmann::json image_hash;

    damaged_run() {
        run.start(run.pipeline(
                      "rec", picture_pipeline("rec", "record_compression = \"none\"\n") + recorded_fragment),
                  {"--frames", std::to_string(recorded_count)});
        REQUIRE(run.wait() == 0);
        image_hash = run.report()["image_hash"];
        const std::string tape = run.path("rec.mcap");
        bytes = read_file(tape).value();
        const shm::unique_fd fd(::open(tape.c_str(), O_RDONLY | O_CLOEXEC));
        contents = mcap::scan(fd.get());
        REQUIRE(contents.chunks.size() == recorded_count);
    }
    int play(const std::string& damaged) {
        std::ofstream(run.path("rec.mcap"), std::ios::binary) << damaged;
        run.start(run.pipeline("play", playing_pipeline("play", "")));
        return run.wait(120);
    }
};

std::string with_flipped_bit(std::string bytes, u64 at, u64 bit) {
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    return bytes;
}

}  // namespace

TEST_CASE("a flipped bit in the length of a chunk index loses no frame of a recording") {
    damaged_run d;
    for (const std::size_t index : {std::size_t{0}, std::size_t{7}}) {
        const u64 start = d.contents.chunks[index].start;
        const std::string raw(reinterpret_cast<const char*>(&start), sizeof start);
        const std::size_t record = d.bytes.rfind(raw) - 2 * sizeof(u64) - mcap::head_bytes;
        REQUIRE(static_cast<mcap::opcode>(d.bytes[record]) == mcap::opcode::chunk_index);
        CHECK(d.play(with_flipped_bit(d.bytes, record + 1 + 3, 4)) == 0);
        INFO(d.run.log());
        CHECK(d.run.report()["frames"] == recorded_count);
        CHECK(d.run.report()["image_hash"] == d.image_hash);
        CHECK_THAT(d.run.log(), contains("the index of"));
    }
}

TEST_CASE("a damaged frame of an unfinished recording is given up by number, the others are played") {
    damaged_run d;
    const u64 end = d.contents.chunks.back().end();
    CHECK(d.play(with_flipped_bit(d.bytes.substr(0, end), d.contents.chunks[5].start + 1, 3)) ==
          exit_code::frames_abandoned);
    INFO(d.run.log());
    CHECK(d.run.report()["frames"] == recorded_count);
    CHECK(d.run.report()["dead_letter_count"] == 1);
    CHECK_THAT(d.run.log(), contains("frame 5 of"));
    CHECK_THAT(d.run.log(), contains("missing: frame 5 of \"fragment\""));
}

TEST_CASE("a flipped bit or a cut in a recording: played completely, or code and log name the rest") {
    const u64 seed = seed_or(std::random_device()());
    INFO("CAROUSEL_TEST_SEED=" << seed);
    std::mt19937_64 random(seed);
    damaged_run d;
    const u64 first = d.contents.front_bytes, end = d.contents.chunks.back().end();
    for (u32 k = 0; k < scaled(3); ++k) {
        // Half of the faults are in the preamble and the summary, which are small.
        const u64 small = first + d.bytes.size() - end;
        u64 at = random() % small;
        at = k % 2 != 0 ? random() % d.bytes.size() : at < first ? at : end + at - first;
        const bool cut = random() % 4 == 0;
        const std::string damaged = cut ? d.bytes.substr(0, at) : with_flipped_bit(d.bytes, at, random() % 8);
        std::vector<u64> lost;
        for (u64 n = 0; n < recorded_count; ++n) {
            const mcap::chunk_entry& unit = d.contents.chunks[n];
            if (damaged.size() < unit.start + unit.length ||
                damaged.compare(unit.start, unit.length, d.bytes, unit.start, unit.length) != 0)
                lost.push_back(n);
        }
        const int code = d.play(damaged);
        INFO(fmt::format("{} at {}", cut ? "cut" : "flip", at));
        INFO(d.run.log());
        if (code == exit_code::usage) {
            CHECK((at < first || lost.size() == recorded_count));
            CHECK_THAT(d.run.log(), contains("rec.mcap"));
            continue;
        }
        if (cut) {
            CHECK(code == 0);
            CHECK(d.run.report()["frames"] == recorded_count - lost.size());
            continue;
        }
        CHECK(d.run.report()["frames"] == recorded_count);
        CHECK(d.run.report()["dead_letter_count"].get<u64>() <= lost.size());
        if (code == 0) CHECK(d.run.report()["image_hash"] == d.image_hash);
        if (code == 0) continue;
        CHECK(code == exit_code::frames_abandoned);
        for (const u64 n : lost) CHECK_THAT(d.run.log(), contains(fmt::format("frame {} of", n)));
    }
}
