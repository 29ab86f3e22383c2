// External programs that read a run's newest frames: they die, the stages die, the supervisor dies.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <sstream>

#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/fork_run.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// An external program, killed at its end. Its output goes to a file.
class reader {
public:
    reader(run_fixture& run, const std::string& name, const std::vector<std::string>& words,
           const std::vector<std::string>& environment = {}, const std::vector<std::string>& prefix = {})
        : file_(run.path(name)) {
        supervisor::spawn_request r;
        r.argv = {"/bin/sh", "-c", "out=$1 && shift && exec \"$@\" >\"$out\" 2>&1", "sh", file_};
        r.argv.insert(r.argv.end(), prefix.begin(), prefix.end());
        r.argv.push_back(programs() + "/carousel-test-port");
        r.argv.insert(r.argv.end(), words.begin(), words.end());
        r.environment = environment;
        r.environment.push_back("XDG_RUNTIME_DIR=" + run.path("runtime"));
        process_ = supervisor::spawn(r);
    }
    ~reader() {
        if (!process_.pidfd) return;
        kill();
        (void)wait(10);
    }
    reader(reader&&) = default;
    reader& operator=(reader&&) = delete;
    void kill() const { shm::signal_pidfd(process_.pidfd.get(), SIGKILL); }
    /// Its exit code; -signal; -1000 if it still runs.
    int wait(f64 timeout_s) {
        if (!process_.pidfd) return -1000;
        pollfd p{process_.pidfd.get(), POLLIN, 0};
        if (::poll(&p, 1, static_cast<int>(timeout_s * 1000)) <= 0) return -1000;
        const supervisor::exit_status s = supervisor::reap(process_.pidfd.get());
        process_.pidfd.reset();
        return s.signal != 0 ? -s.signal : s.exit_code;
    }
    [[nodiscard]] std::string output() const {
        std::ostringstream all;
        all << std::ifstream(file_).rdbuf();
        return all.str();
    }
    /// The newest frame that it has printed.
    [[nodiscard]] u64 frame() const {
        const std::string all = output();
        const auto at = all.rfind("frame ");
        return at == std::string::npos ? 0 : std::strtoull(all.c_str() + at + 6, nullptr, 10);
    }

private:
    std::string file_;
    supervisor::spawned process_;
};

u32 taken_places(const shm::link_block& l) {
    u32 taken = 0;
    for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
        if (ring::group_word::of(ring::load(l.group_state[g])).state != ring::group_state::absent) ++taken;
    return taken;
}

/// A run without faults continues until it is stopped.
void end_and_check(run_fixture& run) {
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    const json r = run.report();
    INFO(run.log());
    check_undamaged(r);
}

}  // namespace

TEST_CASE("an external reader gets whole frames in increasing sequence under kills") {
    run_fixture run;
    const std::string file =
        run.pipeline("looked_at", number_pipeline("looked_at", "fps = 1000\nsupervisor_grace_s = 20\n"));
    run.start(file);
    REQUIRE(run.wait_running());
    reader viewer(run, "reader.out", {"looked_at", "middle"});
    const auto makes_progress = [&] {
        const u64 then = viewer.frame();
        return run.wait_until([&] { return viewer.frame() > then; });
    };
    CHECK(makes_progress());
    for (const char* victim : {"middle", "numbers", "sink"}) {
        run.hit(victim, SIGKILL);
        CHECK(makes_progress());
    }
    run.signal(SIGKILL);  // the supervisor
    REQUIRE(run.wait() == -SIGKILL);
    CHECK(makes_progress());  // without one
    run.start(file);
    REQUIRE(run.wait_running());
    CHECK(makes_progress());
    // The second supervisor knows the reader: its slot is free after the reader has ended.
    const shm::segment segment = map_block(run);
    const shm::link_block& link = link_of(segment, "middle");
    const auto joins = [&] {
        u32 all = 0;
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
            all += ring::group_word::of(ring::load(link.group_state[g])).joins;
        return all;
    };
    CHECK(run.wait_until([&] { return joins() >= 2 && taken_places(link) == 1; }));
    SECTION("it sees the end of the run") {
        end_and_check(run);
        CHECK(viewer.wait(10) == 0);
        CHECK_THAT(viewer.output(), contains("ended: exit code 0"));
        CHECK(run.leftovers() == "");
    }
    SECTION("its place is free when it is killed") {
        viewer.kill();
        CHECK(viewer.wait(10) == -SIGKILL);
        CHECK(run.wait_until([&] { return taken_places(link) == 0; }));
        end_and_check(run);
    }
}

TEST_CASE("readers that are killed under load damage no frame, and their places are freed") {
    run_fixture run;
    run.start(run.pipeline("crowded", number_pipeline("crowded")));
    REQUIRE(run.wait_running());
    const std::vector<json> before = run.stages();
    const shm::segment segment = map_block(run);
    const shm::link_block& link = link_of(segment, "middle");
    std::mt19937_64 random(test_seed());
    std::deque<reader> living;
    const u32 kills = scaled(60);
    for (u32 k = 0; k < kills; ++k) {
        living.emplace_back(run, fmt::format("reader{}.out", k),
                            std::vector<std::string>{"crowded", "middle"});
        sleep_s(static_cast<f64>(random() % 40) / 1000);
        if (living.size() < 4) continue;
        living.front().kill();
        const int code = living.front().wait(10);
        if (code != -SIGKILL) FAIL("a reader ended with " << code << ": " << living.front().output());
        living.pop_front();
    }
    CHECK(run.wait_until([&] { return living.back().frame() > 0; }));
    living.clear();
    CHECK(run.wait_until([&] { return taken_places(link) == 0; }));
    const std::vector<json> after = run.stages();
    for (std::size_t k = 0; k < before.size(); ++k) CHECK(after[k]["pid"] == before[k]["pid"]);
    end_and_check(run);
    CHECK(run.report()["restarts"] == 0);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a reader that dies or is stopped with a frame blocks no stage") {
    const auto point =
        GENERATE(crash_point::latest_leased, crash_point::latest_read, crash_point::latest_released);
    const std::string how = GENERATE("kill", "stop");
    CAPTURE(name_of(point), how);
    run_fixture run;
    crash_plan plan(run.path("plan"));
    plan.add("reader", point, how, 20);
    plan.write();
    run.start(run.pipeline("held_frame", number_pipeline("held_frame", "fps = 2000\n")));
    REQUIRE(run.wait_running());
    const shm::segment segment = map_block(run);
    const shm::link_block& link = link_of(segment, "middle");
    reader dies(run, "reader.out", {"held_frame", "middle"}, {plan.environment()});
    REQUIRE(run.wait_until([&] { return plan.pending_lines().empty(); }));
    const u64 then = ring::load(link.tail);
    CHECK(run.wait_until([&] { return ring::load(link.tail) > then + 200; }));  // many laps
    if (how == "kill") {
        CHECK(dies.wait(10) == -SIGKILL);
        CHECK(run.wait_until([&] { return taken_places(link) == 0; }));
    } else {
        CHECK(taken_places(link) == 1);
    }
    end_and_check(run);
}

TEST_CASE("the ninth reader of a ring is refused while all places are taken, and gets a freed one") {
    run_fixture run;
    run.start(run.pipeline("full", number_pipeline("full", "fps = 100\n")));
    REQUIRE(run.wait_running());
    const shm::segment segment = map_block(run);
    const shm::link_block& link = link_of(segment, "numbers");
    std::deque<reader> all;
    for (u32 k = 0; k < shm::max_latest; ++k)
        all.emplace_back(run, fmt::format("reader{}.out", k), std::vector<std::string>{"full", "numbers"});
    REQUIRE(run.wait_until([&] { return taken_places(link) == shm::max_latest; }));
    reader ninth(run, "ninth.out", {"full", "numbers"});
    CHECK(ninth.wait(20) == exit_code::usage);
    CHECK_THAT(ninth.output(),
               contains("all 8 places for viewers, ports and displays at the ring of numbers"));
    all.pop_front();
    REQUIRE(run.wait_until([&] { return taken_places(link) == shm::max_latest - 1; }));
    reader tenth(run, "tenth.out", {"full", "numbers"});
    CHECK(run.wait_until([&] { return tenth.output().find("frame ") != std::string::npos; }));
    all.clear();
    end_and_check(run);
}

TEST_CASE("a reader of a stalled pipeline reports the reason for its wait") {
    run_fixture run;
    run.start(run.pipeline("standing", number_pipeline("standing", "fps = 200\n")));
    REQUIRE(run.wait_running());
    std::string out;
    REQUIRE(run.command({"stop", "middle"}, out) == 0);
    reader waits(run, "reader.out", {"standing", "middle", "", "0", "0.5"});
    CHECK(waits.wait(20) == exit_code::stage_failed);
    CHECK_THAT(waits.output(),
               contains("no new frame of \"middle\" in 0.5 s: middle is stopped (`carousel cont "
                        "middle` continues it)"));
    REQUIRE(run.command({"cont", "middle"}, out) == 0);
    end_and_check(run);
}

TEST_CASE("a reader in another pid namespace works like any other") {
    std::vector<std::string> unshare{"unshare", "--pid", "--fork", "--kill-child"};
    if (::geteuid() != 0) unshare.insert(unshare.begin() + 1, {"--user", "--map-current-user"});
    std::string tried;
    for (const std::string& word : unshare) tried += word + " ";
    if (std::system((tried + "true 2>/dev/null").c_str()) != 0)
        CAROUSEL_SKIP("no pid namespace can be made here (unshare fails)");
    run_fixture run;
    run.start(run.pipeline("elsewhere", number_pipeline("elsewhere", "fps = 500\n")));
    REQUIRE(run.wait_running());
    const shm::segment segment = map_block(run);
    const shm::link_block& link = link_of(segment, "middle");
    reader viewer(run, "reader.out", {"elsewhere", "middle"}, {}, unshare);
    CHECK(run.wait_until([&] { return viewer.frame() > 0; }));
    SECTION("until the run ends") {
        run.hit("middle", SIGKILL);
        const u64 then = viewer.frame();
        CHECK(run.wait_until([&] { return viewer.frame() > then; }));
        end_and_check(run);
        CHECK(viewer.wait(10) == 0);
        CHECK_THAT(viewer.output(), contains("ended: exit code 0"));
    }
    SECTION("until it is killed, and its place is free again") {
        viewer.kill();
        CHECK(run.wait_until([&] { return taken_places(link) == 0; }));
        end_and_check(run);
    }
}

TEST_CASE("each ring of a fork is read by its name, the first one by its output's, too") {
    run_fixture run;
    run.start(run.pipeline("forked", forked("forked", "fps = 400\n")));
    REQUIRE(run.wait_running());
    std::deque<reader> all;
    for (const char* ring : {"fork", "fork.number", "fork.square"})
        all.emplace_back(run, fmt::format("{}.out", ring), std::vector<std::string>{"forked", ring});
    for (const reader& viewer : all) CHECK(run.wait_until([&] { return viewer.frame() > 0; }));
    reader mistaken(run, "mistaken.out", {"forked", "fork.squar"});
    CHECK(mistaken.wait(10) == exit_code::usage);
    CHECK_THAT(mistaken.output(),
               contains("no ring \"fork.squar\" in forked; those of fork: fork, fork.square"));
    end_and_check(run);
    for (reader& viewer : all) {
        CHECK(viewer.wait(10) == 0);
        CHECK_THAT(viewer.output(), contains("ended: exit code 0"));
    }
}
