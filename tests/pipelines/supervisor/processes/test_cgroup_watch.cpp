// A supervisor's control group, as files below a folder that represents the machine's root.
#include "supervisor/processes/cgroup_watch.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/clock.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

struct machine {
    scratch_folder folder;
    machine() {
        std::filesystem::create_directories(folder.path / "proc/self");
        std::filesystem::create_directories(folder.path / "g/job");
        (void)folder.write("proc/self/mountinfo", "30 22 0:26 / /g rw - cgroup2 cgroup2 rw\n");
        (void)folder.write("proc/self/cgroup", "0::/job\n");
        kills(0);
    }
    void kills(int count) const {
        (void)folder.write("g/job/memory.events", fmt::format("oom 0\noom_kill {}\n", count));
    }
    void quota(const char* text) const { (void)folder.write("g/job/cpu.max", text); }
    void throttled(u64 us) const {
        (void)folder.write("g/job/cpu.stat", fmt::format("throttled_usec {}\n", us));
    }
    [[nodiscard]] std::string root() const { return folder.path.string(); }
};

constexpr u64 begin = 1000 * ns_per_s, tick = 20 * ns_per_ms;

}  // namespace

TEST_CASE("time in which a CPU quota stops the run does not count, except one percent") {
    const machine m;
    m.quota("1000 100000\n");
    m.throttled(0);
    cgroup_watch w(m.root());
    u64 now = begin, us = 0;
    for (; now < begin + 2 * ns_per_s; now += tick) w.tick(now);  // the quota is found, and stops nothing
    CHECK(w.uncounted().between(0, now) == 0);
    CHECK(w.log_text().empty());
    const u64 from = now;
    for (; now < from + 3 * ns_per_s; now += tick) {
        m.throttled(us += 40'000);  // of two processors: more than the time that passes
        w.tick(now);
    }
    const u64 lost = w.uncounted().between(from, now);
    CHECK(lost > 28 * ns_per_s / 10);
    CHECK(lost <= 3 * ns_per_s - 3 * ns_per_s / 100 + tick);
    CHECK_THAT(w.log_text(), test::contains("/g/job/cpu.max") && test::contains(" % of the time"));
    CHECK(w.log_text().empty());  // once
    CHECK(w.consume_uncounted_ns() >= lost);
    CHECK(w.consume_uncounted_ns() == 0);
}

TEST_CASE("time for which the supervisor itself did not run does not count") {
    const machine m;
    cgroup_watch w(m.root());
    u64 now = begin;
    for (; now < begin + ns_per_s; now += tick) w.tick(now);
    CHECK(w.uncounted().between(0, now) == 0);
    const u64 frozen = 30 * ns_per_s;
    w.tick(now += frozen);
    const u64 lost = w.uncounted().between(begin, now);
    CHECK(lost >= frozen - frozen / 50);
    CHECK(lost <= frozen);
    CHECK(w.log_text().empty());  // no quota has done it
}

TEST_CASE("each out-of-memory kill is attributed to one death, and an old one to none") {
    const machine m;
    m.kills(5);
    cgroup_watch w(m.root());
    CHECK_FALSE(w.consume_oom_kill(begin));  // those before the run
    m.kills(7);
    CHECK(w.consume_oom_kill(begin + tick));
    CHECK(w.consume_oom_kill(begin + tick));
    CHECK_FALSE(w.consume_oom_kill(begin + tick));
    m.kills(8);  // of a process that is not a stage
    u64 now = begin + ns_per_s;
    for (; now < begin + 20 * ns_per_s; now += tick) w.tick(now);
    CHECK_FALSE(w.consume_oom_kill(now));
}
