// Steps of a port's program at which it is stopped: what the supervisor, or one that takes the run over,
// finds.
#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "tests/crash/crash_plan.hpp"
#include "tests/crash/port_programs.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

/// A run with two ports. The reader of "analysis" is stopped at a step.
struct stopped_reader {
    stopped_reader(const std::string& of, const std::string& what, crash_point at) : name(of) {
        crash_plan plan(run.path("plan"));
        plan.add(what, at, "stop", 1);
        plan.write();
        run.start(
            run.pipeline(name, fmt::format("[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\n"
                                           "[[stage]]\nname = \"camera\"\nrun = \"port\"\n"
                                           "output = {{ value = \"u64[512]\" }}\ntype = \"test.number\"\n"
                                           "[[stage]]\nname = \"analysis\"\nrun = \"port\"\n"
                                           "inputs = [\"camera\"]\n",
                                           name)));
        REQUIRE(run.wait_until([&] { return state() == "vacant"; }));
        writer.emplace(run, "writes", "carousel-test-port-io",
                       std::vector<std::string>{"write", name, "camera"});
        REQUIRE(run.wait_until([&] { return state("camera") == "running"; }));
        reader.emplace(run, "reads", "carousel-test-port-io",
                       std::vector<std::string>{what, name, "analysis"},
                       std::vector<std::string>{plan.environment()});
        REQUIRE(run.wait_until([&] { return shm::is_stopped(reader->pid()); }));
    }
    std::string state(const std::string& port = "analysis") {
        const json row = run.stage(port);
        return row.is_object() ? row.value("state", "") : "";
    }
    /// Another reader gets the remaining frames.
    void end() {
        reader->signal(SIGKILL);
        REQUIRE(run.wait_until([&] { return state() == "vacant"; }));
        const external_program next(run, "next", "carousel-test-port-io", {"read", name, "analysis"});
        REQUIRE(run.wait_until([&] { return next.has_printed("frame 0\n"); }));
        run.signal(SIGINT);
        CHECK(run.wait() == 0);
        check_undamaged(run.report());
    }
    std::string name;
    run_fixture run;
    std::optional<external_program> writer, reader;
};

/// The lock files of the ports in the run's runtime directory.
std::vector<std::string> locks_in(const std::filesystem::path& folder) {
    std::vector<std::string> out;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        if (file.path().extension() == ".lock" && file.path().filename().string().starts_with("port-"))
            out.push_back(file.path());
    return out;
}

bool is_held(const std::string& lock) {
    const shm::unique_fd fd(::open(lock.c_str(), O_RDWR | O_CLOEXEC));
    return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

TEST_CASE("a port's program that has claimed its entry holds the lock of that entry") {
    stopped_reader s("claims", "read", crash_point::entry_claimed);
    u32 held = 0;
    for (const std::string& lock : locks_in(s.run.path("runtime") + "/carousel/claims"))
        held += is_held(lock) ? 1 : 0;
    CHECK(held == 2);  // the writer's and the reader's
    s.end();
}

TEST_CASE("a port's program reports that it has left only after all memory of the run is unmapped") {
    stopped_reader s("leaves", "next", crash_point::leaving);
    std::ostringstream maps;
    maps << std::ifstream(fmt::format("/proc/{}/maps", s.reader->pid())).rdbuf();
    CHECK(maps.str().find("memfd:") == std::string::npos);  // the rings
    (void)s.state();  // the supervisor replies after it has read what came before
    CHECK(s.state() == "running");
    s.reader->signal(SIGCONT);
    CHECK(s.run.wait_until([&] { return s.state() == "vacant"; }));
    s.end();
}
