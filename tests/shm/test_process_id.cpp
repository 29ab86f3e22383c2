#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("a process is itself and alive") {
    const shm::process_id me = shm::this_process();
    CHECK(me.start_time > 0);
    CHECK(shm::is_alive(me));
}

TEST_CASE("a pid with another start time is another process: not alive, not opened") {
    shm::process_id other = shm::this_process();
    other.start_time += 1;
    CHECK_FALSE(shm::is_alive(other));
    CHECK(shm::open_pidfd(other) == -1);
    CHECK(errno == ESRCH);
}

TEST_CASE("a pidfd signals, and becomes readable when its process is gone") {
    const pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    const shm::process_id id{child, shm::start_time_of(child)};
    const shm::unique_fd pidfd(shm::open_pidfd(id));
    REQUIRE(pidfd);
    CHECK(shm::signal_pidfd(pidfd.get(), SIGKILL) == 0);
    pollfd p{pidfd.get(), POLLIN, 0};
    CHECK(poll(&p, 1, 5000) == 1);
    CHECK_FALSE(shm::is_alive(id));  // a zombie is not alive
    waitpid(child, nullptr, 0);
    CHECK(shm::signal_pidfd(pidfd.get(), SIGKILL) == ESRCH);
}

TEST_CASE("a stopped process is known as stopped") {
    const pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    kill(child, SIGSTOP);
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    CHECK(shm::is_stopped(child));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}
