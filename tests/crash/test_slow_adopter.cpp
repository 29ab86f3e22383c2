// Stages without a supervisor and a slow adopter: the stages wait for the process that holds the run's lock,
// for any supervisor_grace_s.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "shm/process_id.hpp"
#include "tests/crash/crash_drive.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

std::string paced(const std::string& name, const char* grace) {
    return number_pipeline(name, fmt::format("fps = 400\n{}", grace));
}

std::vector<i32> pids_of(run_fixture& run) {
    return {run.pid_of("numbers"), run.pid_of("middle"), run.pid_of("sink")};
}

void kill_supervisor(run_fixture& run) {
    REQUIRE(run.running());
    run.signal(SIGKILL);
    REQUIRE(run.wait() == -SIGKILL);
}

bool is_gone(i32 pid) { return !shm::is_alive({pid, shm::start_time_of(pid)}); }

}  // namespace

TEST_CASE("a second supervisor that is slow to read the outputs finds the stages waiting") {
    run_fixture run;
    std::string text = paced("slow", "supervisor_grace_s = 2\n");
    const std::string program = programs() + "/carousel-test-number";
    const std::string slow = run.path("slow-to-tell");
    std::ofstream(slow) << "#!/bin/sh\n[ \"$1\" = --describe ] && sleep 1.2\nexec " << program << " \"$@\"\n";
    std::filesystem::permissions(slow, std::filesystem::perms::owner_all);
    for (std::size_t at = 0; (at = text.find(program, at)) != std::string::npos; at += slow.size())
        text.replace(at, program.size(), slow);
    const std::string file = run.pipeline("slow", text);
    const std::vector<std::string> to_end{"--frames", "3000"};
    run.start(file, to_end);
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    kill_supervisor(run);
    run.start(file, to_end);  // takes 3.6 s to query them
    REQUIRE(run.wait_running());
    CHECK(run.wait_until([&] { return run.log().find("adopted slow: 3 stages alive") != std::string::npos; },
                         5));
    CHECK(pids_of(run) == before);
    CHECK(run.wait() == 0);
    check_whole(run, 3000, undisturbed_hash(3000), 0);
    CHECK(run.report()["taken_over"] == 1);
}

TEST_CASE("stages wait for the holder of their run's lock and leave when it is released") {
    run_fixture run;
    run.start(run.pipeline("locked", paced("locked", "supervisor_grace_s = 1\n")), {});
    REQUIRE(run.wait_running());
    const std::vector<i32> before = pids_of(run);
    kill_supervisor(run);
    const shm::unique_fd lock(::open(run.path("runtime/carousel/locked/lock").c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(lock);
    REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
    sleep_s(5);
    for (const i32 pid : before) CHECK_FALSE(is_gone(pid));
    REQUIRE(::flock(lock.get(), LOCK_UN) == 0);
    CHECK(run.wait_until([&] { return run.leftovers().empty(); }, 10));
    CHECK(run.leftovers() == "");
}
