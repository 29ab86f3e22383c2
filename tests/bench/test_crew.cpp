// Processes that are started once and measured many times: slow or failing ones are named, and none is left.
#include <unistd.h>

#include <csignal>
#include <thread>

#include "bench/ipc/workers.hpp"
#include "core/clock.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::bench;
using carousel::test::contains;

namespace {

/// `what` selects the action: 0 counts, 1 stays in its round, 2 throws, 3 leaves one inside, 4 dies.
class counter final : public crew_worker {
public:
    crew_work run(u32 what, u32 count, const std::atomic<u32>& stop) override {
        if (what == 2) throw config_error("no more of this");
        if (what == 4) ::raise(SIGKILL);
        u64 n = 0;
        for (; stop.load() == 0 || what == 1; std::this_thread::yield()) n += count;
        put_in_ = n, left_ = what == 3 ? 1 : 0;
        return {n, 10 * n};
    }
    void settle(u32, u64& in, u64& out) override { in = put_in_, out = put_in_ - left_; }

private:
    u64 put_in_ = 0, left_ = 0;
};
std::unique_ptr<crew_worker> make(u32) { return std::make_unique<counter>(); }

constexpr crew_patience short_one{5 * ns_per_s, 300 * ns_per_ms, 100 * ns_per_ms};

}  // namespace

TEST_CASE("a crew runs round after round with the requested workers and sums their results") {
    crew c(3, 30, make);
    REQUIRE(c.ready());
    for (const u32 active : {1U, 3U, 2U, 3U}) {
        const auto r = c.round(0, 5, active, 10);
        REQUIRE(r);
        CHECK(r->operations >= 5 * active);
        CHECK(r->operations % 5 == 0);
        CHECK(r->timed_ns == 10 * r->operations);
        CHECK(r->seconds >= 0.01);
        CHECK(r->right);
    }
    CHECK_FALSE(c.round(3, 1, 2, 1)->right);
}

TEST_CASE("a worker that stays in its round, dies or fails ends the rounds in time and is named") {
    for (const u32 what : {1U, 4U, 2U}) {
        const u64 begun = now_ns();
        {
            crew c(2, 30, make, short_one);
            REQUIRE(c.ready());
            REQUIRE(c.round(0, 1, 2, 1));
            CHECK_FALSE(c.round(what, 1, 2, 1));
            CHECK_THAT(c.why(), contains(what == 2 ? "no more of this" : "not all processes stopped"));
            CHECK_FALSE(c.round(0, 1, 2, 1));
        }
        CHECK(now_ns() - begun < 10 * ns_per_s);
    }
}

TEST_CASE("a crew with a process that can't start is not ready and reports the cause") {
    crew c(
        2, 30,
        [](u32 worker) -> std::unique_ptr<crew_worker> {
            if (worker == 1) throw config_error("no GPU for this one");
            return make(worker);
        },
        short_one);
    CHECK_FALSE(c.ready());
    CHECK_THAT(c.why(), contains("no GPU for this one"));
}
