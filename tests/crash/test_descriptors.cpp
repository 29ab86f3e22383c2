// File descriptors run out: the supervisor reports its own problem, and blames no stage.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "tests/crash/run_fixture.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;

/// the first opened ones stay below, including the descriptors that are reserved for the report
constexpr rlim_t few = 10;

rlim_t set_limit(i32 pid, rlim_t files) {
    rlimit before{};
    REQUIRE(::prlimit(pid, RLIMIT_NOFILE, nullptr, &before) == 0);
    const rlimit now{files, before.rlim_max};
    REQUIRE(::prlimit(pid, RLIMIT_NOFILE, &now, nullptr) == 0);
    return before.rlim_cur;
}

/// CPU time of a process, in seconds.
f64 cpu_s(i32 pid) {
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
    unsigned long user = 0, system = 0;
    const std::size_t at = stat.rfind(')');
    REQUIRE(at != std::string::npos);
    REQUIRE(std::sscanf(stat.c_str() + at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                        &system) == 2);
    return static_cast<f64>(user + system) / static_cast<f64>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

TEST_CASE("without descriptors no process spins, a start waits without an attempt, the run continues") {
    run_fixture run;
    run.start(run.pipeline("short", number_pipeline("short", "fps = 200\n")), {"--frames", "600"});
    REQUIRE(run.wait_running());
    const i32 middle = run.pid_of("middle");
    const rlim_t before = set_limit(run.pid(), few);  // all open ones stay; none can be opened
    REQUIRE(::kill(middle, SIGKILL) == 0);
    CHECK(run.wait_until([&] { return run.log().find("middle can't be started yet: ") != std::string::npos; },
                         5));
    // the shortage is known for a while before a process connects: it is logged all the same
    if (GENERATE(false, true)) sleep_s(0.5);
    const shm::unique_fd waiting =
        shm::connect_to(run.path("runtime") + "/carousel/short/control.sock");  // into the queue
    const f64 cpu = cpu_s(run.pid());
    sleep_s(1.5);
    CHECK(cpu_s(run.pid()) - cpu < 0.75);
    CHECK_THAT(run.log(), contains("cannot accept a connecting process yet: Too many open files (the "
                                   "limit of this process is 10)"));
    CHECK(run.running());
    set_limit(run.pid(), before);
    CHECK(run.wait(60) == 0);
    INFO(run.log());
    const auto r = run.report();
    REQUIRE(r.contains("frames"));
    check_undamaged(r);
    CHECK(r["frames"] == 600);
    CHECK(r["restarts"] == 1);
    CHECK(run.leftovers() == "");
}

TEST_CASE("a run that can't start a process for want of descriptors ends soon and names the limit") {
    run_fixture run;
    run.start(run.pipeline("tight", number_pipeline("tight", "fps = 200\n")), {"--frames", "100000"});
    REQUIRE(run.wait_running());
    const i32 middle = run.pid_of("middle");
    set_limit(run.pid(), few);
    REQUIRE(::kill(middle, SIGKILL) == 0);
    const int code = run.wait(40);
    INFO(run.log());
    CHECK(code == 74);
    CHECK_THAT(run.log(), contains("no stage could start within 8 s: "));
    CHECK_THAT(run.log(), contains("Too many open files (the limit of this process is 10)"));
}

TEST_CASE("with any limit, a run succeeds or reports too few descriptors, and writes its report") {
    struct limited_run {
        int limit;
        scratch_folder folder;
        supervisor::spawned process;
    };
    std::vector<std::unique_ptr<limited_run>> all;  // at once: those that end short wait for 8 s first
    for (const int limit : {18, 22, 24, 26, 40}) {
        limited_run& one = *all.emplace_back(std::make_unique<limited_run>());
        one.limit = limit;
        const std::filesystem::path folder = one.folder.path;
        one.folder.write("low.toml", number_pipeline("low", "fps = 400\n"));
        std::filesystem::create_directories(folder / "runtime");
        supervisor::spawn_request r;
        r.argv = {
            "/bin/sh",
            "-c",
            "ulimit -n $1; cd $2; exec \"$3\" run low.toml --frames 40 --report report.json >run.log 2>&1",
            "sh",
            std::to_string(limit),
            folder.string(),
            programs() + "/carousel"};
        r.environment = {"XDG_RUNTIME_DIR=" + (folder / "runtime").string()};
        one.process = supervisor::spawn(r);
    }
    u32 ended_short = 0;
    for (const auto& one : all) {
        pollfd ready{one->process.pidfd.get(), POLLIN, 0};
        REQUIRE(::poll(&ready, 1, 40'000) == 1);
        const supervisor::exit_status end = supervisor::reap(one->process.pidfd.get());
        const std::filesystem::path folder = one->folder.path;
        const std::string log = read_file((folder / "run.log").string()).value_or("");
        INFO("limit " << one->limit << ", exit code " << end.exit_code << ":\n" << log);
        CHECK(end.signal == 0);
        const bool begun = log.find("can't be") != std::string::npos || end.exit_code == 0;
        CHECK(std::filesystem::exists(folder / "report.json") == begun);
        if (end.exit_code == 0) continue;
        ++ended_short;
        CHECK_THAT(log, contains("Too many open files"));
    }
    CHECK(ended_short > 0);
    CHECK(ended_short < 5);
}
