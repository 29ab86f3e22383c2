// The data that a link's sides rely on: the relation of two clocks, and the token's file.
#include <sys/stat.h>

#include <fstream>

#include "hosts/clock_filter.hpp"
#include "stages/hosts/link/message.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::hosts;
using namespace carousel::test;

TEST_CASE("an answer about the remote clock may contain any time, without an overflow") {
    clock_filter f;
    constexpr u64 far_future = u64{1} << 63U;
    f.answered(1, far_future, 3);
    REQUIRE(f.at(3));
    CHECK(f.at(3)->here_from(far_future) == 3);
}

TEST_CASE("of the clock's replies the quickest counts, until drift may have made it worse") {
    clock_filter f;
    CHECK_FALSE(f.at(0));
    const u64 ms = ns_per_ms;
    f.answered(1000 * ms, 5010 * ms, 1020 * ms);  // 20 ms for the round trip, the other clock is 4 s ahead
    CHECK(f.at(1020 * ms)->offset_ns == static_cast<i64>(4000 * ms) - 1);
    CHECK(f.at(1020 * ms)->error_ns == 10 * ms + 1);
    f.answered(1030 * ms, 5050 * ms, 1070 * ms);  // slower: less precise
    CHECK(f.at(1020 * ms)->error_ns == 10 * ms + 1);
    f.answered(1100 * ms, 5101 * ms, 1101 * ms);
    CHECK(f.at(1101 * ms)->error_ns == ms / 2 + 1);
    CHECK(f.at(1101 * ms)->here_from(5101 * ms) == 1101 * ms - (ms / 2 - 1) + 0);
    CHECK(f.at(11'101 * ms)->error_ns == ms / 2 + 1 + ms);  // 10 s later
    f.answered(11'099 * ms, 15'100 * ms,
               11'101 * ms);  // 1 ms is better than the remaining precision of the old one
    CHECK(f.at(11'101 * ms)->error_ns == ms + 1);
    f.answered(20'000 * ms, 1, 19'000 * ms);  // from the future
    CHECK(f.answers() == 4);
}

TEST_CASE("a token file must be readable only by its owner and contain a secret") {
    const scratch_folder folder;
    const auto file = [&](const std::string& text, mode_t mode) {
        std::string path = (folder.path / "token").string();
        std::ofstream(path) << text;
        ::chmod(path.c_str(), mode);
        return path;
    };
    CHECK_NOTHROW(token_file::read(file("0123456789abcdef\n", 0600)));
    CHECK_THROWS_WITH(token_file::read(file("0123456789abcdef\n", 0640)),
                      Catch::Contains("other users can read it"));
    CHECK_THROWS_WITH(token_file::read(file("short\n", 0600)),
                      Catch::Contains("has 5 bytes; expected at least 16"));
    CHECK_THROWS_WITH(token_file::read((folder.path / "none").string()),
                      Catch::Contains("Create one for both hosts"));
    CHECK_THROWS_WITH(token_file::read(folder.path.string()), Catch::Contains("is not a regular file"));
}
