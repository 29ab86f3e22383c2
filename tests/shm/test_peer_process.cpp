// The process at the other end of a connection, also if its pid has been reused by the time of the look-up.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <functional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "shm/process_id.hpp"
#include "tests/support/reused_pid.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using test::need;

namespace {
std::function<void(std::string_view)> at_open;
}  // namespace

// Intercepts each open() of this program: a function does what happens between two reads of /proc.
extern "C" int open(const char* path, int flags, ...) {
    static auto* const real = reinterpret_cast<int (*)(const char*, int, ...)>(::dlsym(RTLD_NEXT, "open"));
    va_list all;
    va_start(all, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(all, mode_t) : 0;
    va_end(all);
    if (at_open) at_open(path);
    return real(path, flags, mode);
}

namespace {

struct listening {
    scratch_folder folder;
    std::string path = folder.path / "peer.sock";
    shm::unique_fd listener = shm::listen_at(path);
    [[nodiscard]] shm::unique_fd accept() const {
        return shm::unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
};

using finder = shm::peer_process (*)(int, u64) noexcept;

/// A process connects, reports its start time and ends; another one gets its pid. Returns what `find` returns
/// for the connection.
void find_a_reused_pid(finder find, bool reported) {
    const listening at;
    auto [ours, theirs] = shm::socket_pair();
    const pid_t first = ::fork();
    if (first == 0) {
        const shm::unique_fd held = shm::connect_to(at.path);
        (void)shm::send_message(theirs.get(), std::to_string(shm::this_process().start_time));
        ::_exit(held ? 0 : 1);
    }
    shm::message m;
    need(shm::receive_message(ours.get(), m, 20 * ns_per_s) == shm::receive_status::ok);
    need(::waitpid(first, nullptr, 0) == first);
    const shm::unique_fd connection = at.accept();
    const u64 start_time = std::stoull(m.text);
    ::usleep(20'000);  // a different start time: it counts in ticks of 10 ms
    const pid_t second = test::fork_as(first, [] { ::pause(); });
    need(shm::peer_of(connection.get()).pid == second);  // the result of the old look-up
    const shm::peer_process p = find(connection.get(), reported ? start_time : 0);
    need(!p.pidfd && errno == ESRCH);
    ::kill(second, SIGKILL);
    ::waitpid(second, nullptr, 0);
}

void require_went_through(const test::ending& e) {
    if (e.code == 77) CAROUSEL_SKIP("no pid namespace in which a pid can be chosen can be made here");
    CHECK(e == test::went_through);
}

}  // namespace

TEST_CASE("a peer is pinned: its pid, its start time, and its end") {
    const listening at;
    const shm::unique_fd connection = shm::connect_to(at.path);
    const shm::unique_fd accepted = at.accept();
    const shm::process_id me = shm::this_process();
    for (const u64 reported : {u64{0}, me.start_time}) {
        for (const finder find : {&shm::peer_process_of, &shm::peer_process_by_start_time}) {
            const shm::peer_process p = find(accepted.get(), reported);
            CHECK(p.id == me);
            REQUIRE(p.pidfd);
            CHECK_FALSE(shm::has_ended(p.pidfd.get()));
        }
    }
    CHECK_FALSE(shm::peer_process_by_start_time(accepted.get(), me.start_time + 1).pidfd);
}

TEST_CASE("a process that has a dead peer's pid is not taken for the peer") {
    require_went_through(
        test::in_pid_namespace(true, [] { find_a_reused_pid(&shm::peer_process_of, true); }));
    require_went_through(
        test::in_pid_namespace(true, [] { find_a_reused_pid(&shm::peer_process_of, false); }));
}

TEST_CASE("without SO_PEERPIDFD a reused pid is known by the start time or the connection's end") {
    require_went_through(
        test::in_pid_namespace(true, [] { find_a_reused_pid(&shm::peer_process_by_start_time, true); }));
    require_went_through(
        test::in_pid_namespace(true, [] { find_a_reused_pid(&shm::peer_process_by_start_time, false); }));
}

TEST_CASE("a pidfd of a reaped process has no start time, even if its pid is reused") {
    require_went_through(test::in_pid_namespace(true, [] {
        const pid_t first = ::fork();
        if (first == 0) ::_exit(0);
        const shm::process_id id{first, shm::start_time_of(first)};
        const shm::unique_fd pidfd(shm::open_pidfd(id));
        need(pidfd && shm::start_time_of(pidfd.get(), first) == id.start_time);
        need(::waitpid(first, nullptr, 0) == first);
        const pid_t second = test::fork_as(first, [] { ::pause(); });
        need(shm::start_time_of(second) != 0);
        need(shm::start_time_of(pidfd.get(), first) == 0);
        ::kill(second, SIGKILL);
        ::waitpid(second, nullptr, 0);
    }));
}

/// Starts a process with MARK=1 in its environment. `work` gets its pid and /proc folder; between two reads
/// of that folder it can call the function that it gets, after which another process has the pid.
void with_marked_process(
    const std::function<void(pid_t, const std::string&, const std::function<void()>&)>& work) {
    require_went_through(test::in_pid_namespace(true, [&] {
        const pid_t marked = ::fork();
        if (marked == 0)
            ::execle("/bin/sleep", "sleep", "60", nullptr,
                     std::array<const char*, 2>{"MARK=1", nullptr}.data());
        const std::string process = "/proc/" + std::to_string(marked);
        const auto has_mark = [&] {
            return read_file(process + "/environ").value_or("").starts_with("MARK=1");
        };
        for (const u64 until = now_ns() + 20 * ns_per_s; !has_mark() && now_ns() < until;) ::usleep(1'000);
        ::usleep(20'000);  // another start time
        pid_t second = 0;
        work(marked, process, [&] {
            if (second != 0) return;
            ::kill(marked, SIGKILL);
            ::waitpid(marked, nullptr, 0);
            second = test::fork_as(marked, [] { ::pause(); });
        });
        need(second == marked);
        ::kill(second, SIGKILL);
        ::waitpid(second, nullptr, 0);
    }));
}

TEST_CASE("a process that gets a marked one's pid while the marks are read is not taken for it") {
    with_marked_process([](pid_t, const std::string& process, const std::function<void()>& reuse_pid) {
        need(shm::marked_processes("MARK=1").size() == 1);
        at_open = [&, seen = false](std::string_view path) mutable {
            seen = seen || path == process + "/environ";
            if (seen && path == process + "/stat") reuse_pid();
        };
        const std::vector<shm::process_id> found = shm::marked_processes("MARK=1");
        at_open = {};
        need(found.empty());
    });
}

TEST_CASE("an environment is not read of a later process with the same pid") {
    with_marked_process([](pid_t marked, const std::string& process, const std::function<void()>& reuse_pid) {
        const shm::process_id id{marked, shm::start_time_of(marked)};
        need(shm::environment_of(id).starts_with("MARK=1"));
        at_open = [&](std::string_view path) {
            if (path == process + "/environ") reuse_pid();
        };
        const std::string text = shm::environment_of(id);
        at_open = {};
        need(text.empty());
    });
}
