// A stage and the death of its supervisor: the stage's output after that is where the next supervisor reads,
// whichever of the dead one's files the kernel closes first, and the next supervisor learns from which moment
// on the stage writes elsewhere.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "stages/runner/supervisor_link.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

namespace {

/// A process whose stdout and stderr are a pipe to the test, which is also its supervisor.
struct orphan {
    scratch_folder folder;
    shm::unique_fd ours, log;
    pid_t pid = 0;

    orphan() {
        std::filesystem::create_directories(folder.path / "logs");
        auto [here, there] = shm::socket_pair();
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        pid = ::fork();
        if (pid == 0) {
            here.reset();
            ::close(ends[0]);
            ::dup2(ends[1], STDOUT_FILENO);
            ::dup2(ends[1], STDERR_FILENO);
            ::close(ends[1]);
            ::signal(SIGPIPE, SIG_IGN);
            stages::attachment a;
            a.runtime_directory = folder.path.string();
            a.stage = "middle";
            a.kept_json = "[]";
            a.incarnation.seat = 3;
            a.socket = std::move(there);
            stages::supervisor_link link(a);
            for (const u64 until = now_ns() + 20 * ns_per_s; now_ns() < until;) link.watch(5);
            ::_exit(0);
        }
        ours = std::move(here);
        log = shm::unique_fd(ends[0]);
        ::close(ends[1]);
    }
    ~orphan() {
        if (pid < 0) return;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    orphan(const orphan&) = delete;
    orphan& operator=(const orphan&) = delete;

    [[nodiscard]] std::string alone() const {
        return read_file((folder.path / "logs" / fmt::format("middle.3.{}.alone", pid)).string())
            .value_or("");
    }
    [[nodiscard]] bool eventually_logs(const std::string& text) const {
        for (const u64 until = now_ns() + 10 * ns_per_s; now_ns() < until;
             std::this_thread::sleep_for(std::chrono::milliseconds(5)))
            if (alone().find(text) != std::string::npos) return true;
        return false;
    }
};

void pass(u64 ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

TEST_CASE("a supervisor's end is not logged to a pipe that its kernel is about to close") {
    orphan o;
    pass(50);
    const bool socket_first = GENERATE(true, false);
    if (!socket_first) o.log.reset();
    pass(300);
    o.ours.reset();
    if (socket_first) {
        pass(300);
        CHECK(o.alone().empty());
        o.log.reset();
    }
    CHECK(o.eventually_logs("the supervisor has ended"));
}

TEST_CASE("a stage that was stopped while its supervisor ended counts the time without it at once") {
    const scratch_folder folder;
    auto [here, there] = shm::socket_pair();
    stages::attachment a;
    a.runtime_directory = folder.path.string();
    a.socket = std::move(there);
    stages::supervisor_link link(a);
    link.watch(1);
    CHECK(link.unsupervised_ns() == 0);
    pass(1000);  // stopped
    here.reset();
    link.watch(1);  // finds the end of the supervisor and of the pause
    pass(20);
    CHECK(link.unsupervised_ns() >= 20 * ns_per_ms);
}

TEST_CASE("a process that starts over ends with its supervisor, because it gives up its entry") {
    orphan o;
    REQUIRE(shm::send_message(o.ours.get(), write_message(run::start_over_message{}).dump()));
    pass(50);
    CHECK(::kill(o.pid, 0) == 0);
    o.ours.reset();
    int status = 0;
    bool ended = false;
    for (const u64 until = now_ns() + 10 * ns_per_s; !ended && now_ns() < until; pass(5))
        ended = ::waitpid(o.pid, &status, WNOHANG) == o.pid;
    REQUIRE(ended);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == exit_code::supervisor_gone);
    o.pid = -1;
}

TEST_CASE("a stage polls for a supervisor more often than a supervisor can live and die unseen") {
    const scratch_folder folder;
    stages::attachment a;
    a.runtime_directory = folder.path.string();
    stages::supervisor_link link(a);
    const u64 began = now_ns();
    for (int k = 0; k < 10; ++k) link.watch(5000);
    CHECK(now_ns() - began < 20 * ns_per_s);  // 50 s if each had waited for its 5 s
}

TEST_CASE("a returning stage logs when it writes to its new pipe") {
    orphan o;
    o.log.reset();
    o.ours.reset();
    REQUIRE(o.eventually_logs("the supervisor has ended"));
    const std::string path = (o.folder.path / "control.sock").string();
    const shm::unique_fd listener = shm::listen_at(path);
    REQUIRE(listener);
    pollfd p{listener.get(), POLLIN, 0};
    REQUIRE(::poll(&p, 1, 10'000) == 1);
    const shm::unique_fd second(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(second);
    shm::message m;
    REQUIRE(shm::receive_message(second.get(), m, 10 * ns_per_s) == shm::receive_status::ok);
    CHECK_THAT(m.text, test::contains("\"return\""));
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const shm::unique_fd reader(ends[0]);
    REQUIRE(shm::send_message(second.get(), R"({"ok":true,"log":0})", {ends[1]}));
    ::close(ends[1]);
    REQUIRE(shm::receive_message(second.get(), m, 10 * ns_per_s) == shm::receive_status::ok);
    CHECK(m.text == R"({"type":"back"})");
    const std::string before = o.alone();
    p = {reader.get(), POLLIN, 0};
    REQUIRE(::poll(&p, 1, 10'000) == 1);
    char text[512] = {};
    REQUIRE(::read(reader.get(), text, sizeof text - 1) > 0);
    CHECK_THAT(std::string(text), test::contains("another supervisor has taken over the run"));
    CHECK(o.alone() == before);
}
