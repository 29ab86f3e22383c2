#include <fcntl.h>
#include "os/spawn.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

exit_status run(const spawn_request& r) {
    const spawned p = spawn(r);
    pollfd ready{p.pidfd.get(), POLLIN, 0};
    ::poll(&ready, 1, 10'000);
    return reap(p.pidfd.get());
}

}  // namespace

TEST_CASE("a child's end is reported by its pidfd: code or signal") {
    CHECK(run({.argv = {"/bin/sh", "-c", "exit 7"}, .environment = {}}).exit_code == 7);
    CHECK(run({.argv = {"/bin/sh", "-c", "kill -ABRT $$"}, .environment = {}}).signal == SIGABRT);
    const exit_status unknown = reap(-1);
    CHECK_FALSE(unknown.known);
}

TEST_CASE("a child gets its environment, and no stdin, fd or blocked signal of its parent") {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    std::signal(SIGPIPE, SIG_IGN);
    const scratch_folder folder;
    const std::string out = (folder.path / "out").string();
    const shm::unique_fd ours(::open(out.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const std::string script =
        "test \"$WORD\" = told || exit 9; for f in 0 1 2; do readlink /proc/self/fd/$f; done; ls -l "
        "/proc/self/fd | grep -c "
        "\"$FILE\";"
        "grep -E 'SigBlk|SigIgn' /proc/self/status; cat";
    CHECK(run({.argv = {"/bin/sh", "-c", script},
               .environment = {"WORD=told", "FILE=" + out},
               .output = ours.get()})
              .exit_code == 0);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    std::ifstream in(out);
    std::string input, output, errors, name;
    int ours_open = 0;
    u64 blocked_mask = 1, ignored_mask = 0;
    in >> input >> output >> errors >> ours_open >> name >> std::hex >> blocked_mask >> name >> ignored_mask;
    CHECK(input == "/dev/null");
    CHECK(output == out);
    CHECK(errors == out);
    CHECK(ours_open == 1);  // stderr of `ls`, whose stdout is a pipe: our own fd is not inherited
    CHECK(blocked_mask == 0);
    CHECK((ignored_mask & 1U << (SIGPIPE - 1)) == 0);
}

TEST_CASE("a child ignores what its parent was started to ignore, except the signals that end it") {
    const int ignored[] = {SIGHUP, SIGUSR1, SIGINT, SIGTERM};
    struct sigaction before[std::size(ignored)], ignore{};
    ignore.sa_handler = SIG_IGN;
    for (std::size_t k = 0; k < std::size(ignored); ++k) ::sigaction(ignored[k], &ignore, &before[k]);
    const auto mask_in_child = [](bool interactive) {
        const scratch_folder folder;
        const std::string out = (folder.path / "out").string();
        const shm::unique_fd file(::open(out.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        spawn_request r{.argv = {"/bin/sh", "-c", "grep SigIgn /proc/self/status"}, .environment = {}};
        r.output = file.get();
        r.interactive = interactive;
        CHECK(run(r).exit_code == 0);
        std::ifstream in(out);
        std::string name;
        u64 mask = 0;
        in >> name >> std::hex >> mask;
        return mask;
    };
    const auto has = [](u64 mask, int signal) { return (mask >> (signal - 1) & 1U) != 0; };
    const u64 of_stage = mask_in_child(false), of_tool = mask_in_child(true);
    for (std::size_t k = 0; k < std::size(ignored); ++k) ::sigaction(ignored[k], &before[k], nullptr);
    for (const int s : {SIGHUP, SIGUSR1}) CHECK(has(of_stage, s));
    for (const int s : {SIGINT, SIGTERM, SIGCHLD}) CHECK_FALSE(has(of_stage, s));
    for (const int s : {SIGHUP, SIGINT, SIGTERM})
        CHECK(has(of_tool, s));  // a terminal's are not meant for it
}

TEST_CASE("a program that can't be started is named") {
    CHECK_THROWS_WITH(spawn({.argv = {"/nowhere/stage"}, .environment = {}}),
                      test::contains("/nowhere/stage"));
    CHECK_THROWS_AS(spawn({.argv = {"/nowhere/stage"}, .environment = {}}), config_error);
}

TEST_CASE("a process being taken down is distinguished from a live one") {
    const spawned p = spawn({.argv = {"/bin/sleep", "30"}, .environment = {}});
    CHECK_FALSE(is_exiting(p.pid));
    CHECK_FALSE(has_ended(p.pidfd.get()));
    shm::signal_pidfd(p.pidfd.get(), SIGKILL);
    pollfd ready{p.pidfd.get(), POLLIN, 0};
    ::poll(&ready, 1, 5000);
    CHECK(is_exiting(p.pid));  // a zombie
    CHECK(has_ended(p.pidfd.get()));
    CHECK(reap(p.pidfd.get()).signal == SIGKILL);
    CHECK(is_exiting(p.pid));
}
