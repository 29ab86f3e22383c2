// Which findings of looks at a running pipeline stand.
#include "supervisor/engine/word_audit.hpp"

#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using found = std::vector<ring::finding>;

namespace {
const ring::finding broken{"job 3 (middle)", "bears epoch 4711, which no process of its seat has"};
ring::finding moving(u64 k) { return {"ring of numbers: frame " + std::to_string(k), "is nowhere"}; }
}  // namespace

TEST_CASE("a finding that stands through all looks is told, those of frames that move are not") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    for (u32 k = 0; k + 1 < word_audit::looks; ++k, now += word_audit::apart_ns) {
        REQUIRE(a.due(now));
        REQUIRE(a.see({moving(k), broken}, now).empty());
        REQUIRE_FALSE(a.due(now));
    }
    CHECK(a.see({broken, moving(99)}, now) == found{broken});
}

TEST_CASE("looks that agree on nothing are followed by a rest of a second, unless somebody dies") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    CHECK(a.see({moving(1)}, now).empty());
    now += word_audit::apart_ns;
    REQUIRE(a.due(now));
    CHECK(a.see({moving(2)}, now).empty());
    CHECK_FALSE(a.due(now + word_audit::every_ns - 1));
    CHECK(a.due(now + word_audit::every_ns));
    a.ask(now + 5);
    CHECK(a.due(now + 5));
    CHECK(a.see({}, now + 5).empty());
    CHECK_FALSE(a.due(now + 6));
}

TEST_CASE("a finding that comes in the middle of a row of looks waits for the next row") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    CHECK(a.see({moving(1)}, now).empty());
    now += word_audit::apart_ns;
    CHECK(a.see({broken}, now).empty());
    u32 more = 1;
    for (now += word_audit::every_ns; a.see({broken}, now).empty(); now += word_audit::apart_ns) ++more;
    CHECK(more == word_audit::looks);
}

TEST_CASE("who dies while looks are under way is followed by looks of its own, at once") {
    word_audit a;
    u64 now = 1000 * ns_per_s;
    CHECK(a.see({moving(1)}, now).empty());
    a.ask(now + 5);
    now += word_audit::apart_ns;
    CHECK_FALSE(a.due(now - 1));
    CHECK(a.see({broken}, now).empty());  // it was not there at the first look
    for (u32 k = 0; k + 1 < word_audit::looks; ++k, now += word_audit::apart_ns) {
        REQUIRE(a.due(now));
        REQUIRE(a.see({broken}, now).empty());
    }
    REQUIRE(a.due(now));
    CHECK(a.see({broken}, now) == found{broken});
    CHECK_FALSE(a.due(now + 1));
}
