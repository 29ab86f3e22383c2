// Which findings about a running pipeline are confirmed.
#include "supervisor/engine/block_custodian.hpp"

#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using found = std::vector<ring::finding>;

namespace {
const ring::finding broken{"job 3 (middle)", "has epoch 4711, which no process of its seat has"};
ring::finding moving(u64 k) { return {"ring of numbers: frame " + std::to_string(k), "is missing"}; }
}  // namespace

TEST_CASE("a finding that persists through all polls is reported, one of moving frames is not") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    for (u32 k = 0; k + 1 < word_audit::checks; ++k, now += word_audit::apart_ns) {
        REQUIRE(a.due(now));
        REQUIRE(a.add_sample({moving(k), broken}, now).empty());
        REQUIRE_FALSE(a.due(now));
    }
    CHECK(a.add_sample({broken, moving(99)}, now) == found{broken});
}

TEST_CASE("polls without agreement are followed by a second's rest, unless a process dies") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    CHECK(a.add_sample({moving(1)}, now).empty());
    now += word_audit::apart_ns;
    REQUIRE(a.due(now));
    CHECK(a.add_sample({moving(2)}, now).empty());
    CHECK_FALSE(a.due(now + word_audit::every_ns - 1));
    CHECK(a.due(now + word_audit::every_ns));
    a.request_audit(now + 5);
    CHECK(a.due(now + 5));
    CHECK(a.add_sample({}, now + 5).empty());
    CHECK_FALSE(a.due(now + 6));
}

TEST_CASE("a finding during a series of checks waits for the next series") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    CHECK(a.add_sample({moving(1)}, now).empty());
    now += word_audit::apart_ns;
    CHECK(a.add_sample({broken}, now).empty());
    u32 more = 1;
    for (now += word_audit::every_ns; a.add_sample({broken}, now).empty(); now += word_audit::apart_ns)
        ++more;
    CHECK(more == word_audit::checks);
}

TEST_CASE("a death during a series of checks starts its own series at once") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    CHECK(a.add_sample({moving(1)}, now).empty());
    a.request_audit(now + 5);
    now += word_audit::apart_ns;
    CHECK_FALSE(a.due(now - 1));
    CHECK(a.add_sample({broken}, now).empty());  // it did not exist at the first poll
    for (u32 k = 0; k + 1 < word_audit::checks; ++k, now += word_audit::apart_ns) {
        REQUIRE(a.due(now));
        REQUIRE(a.add_sample({broken}, now).empty());
    }
    REQUIRE(a.due(now));
    CHECK(a.add_sample({broken}, now) == found{broken});
    CHECK_FALSE(a.due(now + 1));
}
