// `carousel debug`: a debugger stops a stage for longer than its deadline, and the stage is not replaced.
#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "tests/crash/number_run.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

/// Numbers at 50 frames/s; a stage that does not respond for 0.4 s is replaced.
std::string watched_pipeline(const std::string& name) {
    return number_pipeline(name, "fps = 50\nframe_timeout_ms = 400\nstall_timeout_ms = 800\n");
}

bool can_debug() {
    return std::system(
               "gdb --version >/dev/null 2>&1 && sh -c 'sleep 5 & gdb -batch -p $! 2>&1 | grep -q "
               "Inferior'") == 0;
}

}  // namespace

TEST_CASE("a debugger that stops a stage for longer than its deadline causes no restart") {
    if (!can_debug()) CAROUSEL_SKIP("gdb is missing or may not attach");
    run_fixture run;
    run.start(run.pipeline("debugged", watched_pipeline("debugged")));
    REQUIRE(run.wait_running());
    const i32 pid = run.pid_of("middle");
    std::string out;
    CHECK(run.command({"debug", "middle", "--batch", "--ex", "bt 3", "--ex", "shell sleep 1.5"}, out) == 0);
    INFO(out);
    INFO(run.log());
    CHECK_THAT(out, contains("its deadlines are suspended until the debugger ends"));
    CHECK_THAT(out, contains("#0 "));
    CHECK_THAT(out, contains("Inferior 1 (process " + std::to_string(pid) + ") detached"));
    sleep_s(1);  // deadlines count again
    CHECK(run.pid_of("middle") == pid);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    CHECK_THAT(run.log(), contains(fmt::format("middle (pid {}) is debugged (`carousel debug`, pid ", pid)));
    CHECK_THAT(run.log(), contains(fmt::format(
                              "middle (pid {}): the debugger has ended, and deadlines count again", pid)));
    CHECK(run.report()["restarts"] == 0);
    CHECK(run.report()["stalls"] == 0);
    check_undamaged(run.report());
}

TEST_CASE("a killed command ends its debugger, the stage continues, and deadlines count again") {
    if (!can_debug()) CAROUSEL_SKIP("gdb is missing or may not attach");
    run_fixture run;
    run.start(run.pipeline("killed", watched_pipeline("killed")));
    REQUIRE(run.wait_running());
    const i32 pid = run.pid_of("middle");
    std::string out;
    std::thread debugger([&] {
        std::string text;
        run.command({"debug", "middle", "--batch", "--ex", "shell sleep 20"}, text);
        out = text;
    });
    const bool stopped = run.wait_until([&] { return shm::is_stopped(pid); });
    sleep_s(1);
    // the pid of the command, from the log of the run
    const std::string log = run.log(), before = "(`carousel debug`, pid ";
    const std::size_t at = log.find(before);
    if (at != std::string::npos) ::kill(std::atoi(log.c_str() + at + before.size()), SIGKILL);
    debugger.join();
    INFO(run.log());
    CHECK(stopped);
    REQUIRE(at != std::string::npos);
    CHECK(run.wait_until([&] { return !shm::is_stopped(pid); }, 2));
    sleep_s(0.6);
    CHECK(run.pid_of("middle") == pid);
    // a stage that is stopped without a debugger is replaced
    run.hit("middle", SIGSTOP);
    CHECK(run.wait_until([&] { return run.pid_of("middle") != pid; }));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    CHECK_THAT(run.log(), contains("the debugger has ended, and deadlines count again"));
    check_undamaged(run.report());
}

TEST_CASE("a debugger stays attached while a second supervisor takes the run over") {
    if (!can_debug()) CAROUSEL_SKIP("gdb is missing or may not attach");
    run_fixture run;
    const std::string file = run.pipeline("adopted", watched_pipeline("adopted"));
    run.start(file);
    REQUIRE(run.wait_running());
    const i32 pid = run.pid_of("middle");
    std::string out;
    std::thread debugger([&] {
        std::string text;
        run.command({"debug", "middle", "--batch", "--ex", "shell sleep 4"}, text);
        out = text;
    });
    const bool stopped = run.wait_until([&] { return shm::is_stopped(pid); });
    run.signal(SIGKILL);
    CHECK(run.wait() == -SIGKILL);
    const std::string first_log = run.log();
    run.start(file);
    debugger.join();
    INFO(first_log);
    INFO(run.log());
    INFO(out);
    CHECK(stopped);
    CHECK_THAT(out, contains("has taken the run over; the deadlines are suspended there"));
    sleep_s(1);
    CHECK(run.pid_of("middle") == pid);
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
}

TEST_CASE("a machine that has only cuda-gdb uses it for a stage without a GPU, too") {
    run_fixture run;
    const std::string folder = run.path("bin");
    REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
    std::ofstream(folder + "/cuda-gdb") << "#!/bin/sh\necho a debugger of \"$@\"\n";
    REQUIRE(::chmod((folder + "/cuda-gdb").c_str(), 0700) == 0);
    run.start(run.pipeline("only_cuda_gdb", watched_pipeline("only_cuda_gdb")));
    REQUIRE(run.wait_running());
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", folder.c_str(), 1);
    std::string out;
    const int code = run.command({"debug", "middle"}, out);
    ::setenv("PATH", path.c_str(), 1);
    INFO(out);
    CHECK(code == 0);
    CHECK_THAT(out, contains("a debugger of"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}

TEST_CASE("a debugger is refused for a stage that does not exist, with the stages that do") {
    run_fixture run;
    run.start(run.pipeline("refused", watched_pipeline("refused")));
    REQUIRE(run.wait_running());
    std::string out;
    CHECK(run.command({"debug", "midle", "--gdb", "/bin/true"}, out) == exit_code::usage);
    CHECK_THAT(out, contains("middle"));
    CHECK(run.command({"debug", "middle", "--gdb", "/no/such/gdb"}, out) == exit_code::usage);
    CHECK_THAT(out, contains("--gdb /no/such/gdb: no such program"));
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
}
