// Busy time: counted while it lasts, by several threads, each span once; what a death leaves is counted for
// nobody.
#include "telemetry/busy_time.hpp"

#include <memory>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "ring/participants.hpp"
#include "ring/topology.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::telemetry;

namespace {
struct process {
    std::unique_ptr<shm::control_block> c = std::make_unique<shm::control_block>();
    shm::incarnation& e = c->entry[3];
    shm::stage_counters& n = c->stage[0].counters;
    [[nodiscard]] u64 busy() const { return n.busy_ns.load(); }
};
}  // namespace

TEST_CASE("busy time increases while a frame is in progress, not only when the stage becomes idle") {
    process p;
    begin_busy(p.e, 1000);
    count_busy(p.e, p.n, 1400, false);
    CHECK(p.busy() == 400);
    count_busy(p.e, p.n, 1900, false);
    CHECK(p.busy() == 900);
    count_busy(p.e, p.n, 2000, true);
    CHECK(p.busy() == 1000);
}

TEST_CASE("an idle stage is not busy, for any length of the measurement") {
    process p;
    count_busy(p.e, p.n, 5000, false);
    count_busy(p.e, p.n, 9000, true);
    CHECK(p.busy() == 0);
    begin_busy(p.e, 9500);
    count_busy(p.e, p.n, 9600, true);
    count_busy(p.e, p.n, 99000, false);
    CHECK(p.busy() == 100);
}

TEST_CASE("a late reading does not reduce the time and still ends the span") {
    process p;
    begin_busy(p.e, 1000);
    count_busy(p.e, p.n, 3000, false);
    count_busy(p.e, p.n, 2500, false);  // took its time before another thread did
    CHECK(p.busy() == 2000);
    count_busy(p.e, p.n, 2900, true);
    CHECK(p.busy() == 2000);
    count_busy(p.e, p.n, 8000, false);
    CHECK(p.busy() == 2000);
}

TEST_CASE("threads that count concurrently count each span once") {
    process p;
    const u64 began = now_ns();
    begin_busy(p.e, began);
    std::vector<std::thread> readers;
    for (int k = 0; k < 4; ++k)
        readers.emplace_back([&] {
            for (int n = 0; n < 20'000; ++n) count_busy(p.e, p.n, now_ns(), false);
        });
    for (std::thread& t : readers) t.join();
    const u64 ended = now_ns();
    count_busy(p.e, p.n, ended, true);
    CHECK(p.busy() == ended - began);
}

TEST_CASE("work started by a dead process counts neither for it nor for its entry's next owner") {
    process p;
    ring::plan plan;
    plan.stages = {{"source", {}, true}, {"sink", {0}, false}};
    for (ring::stage_plan& s : plan.stages) s.slot_bytes = 64;
    ring::initialise(*p.c, plan);
    for (shm::incarnation& e : p.c->entry)
        begin_busy(e, 1000);  // each value that is taken was added by some
                              // thread
    const ring::incarnation_id successor = ring::appoint(*p.c, 0);
    REQUIRE(successor);
    count_busy(p.c->entry[successor.entry], p.n, 1'000'000, false);
    CHECK(p.busy() == 0);
}
