#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

namespace {

struct locked_file {
    scratch_folder folder;
    std::string path = folder.write("lock", "");
    shm::unique_fd open() const { return shm::unique_fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)); }
};

/// A child that runs `then` and exits.
class child {
public:
    explicit child(void (*then)()) : pid_(::fork()) {
        if (pid_ != 0) return;
        then();
        ::_exit(1);
    }
    ~child() { end(); }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    void end() {
        if (pid_ == 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

private:
    pid_t pid_;
};

}  // namespace

TEST_CASE("several processes share a lock, and an exclusive one waits for the last of them") {
    const locked_file f;
    const shm::unique_fd one = f.open(), other = f.open(), remover = f.open();
    CHECK_FALSE(shm::is_locked_elsewhere(remover.get()));
    REQUIRE(shm::lock_shared(one.get()) == 0);
    REQUIRE(shm::lock_shared(other.get()) == 0);
    CHECK(shm::is_locked_elsewhere(remover.get()));
    CHECK(shm::lock_exclusive(remover.get()) == EAGAIN);
    shm::unlock(one.get());
    CHECK(shm::lock_exclusive(remover.get()) == EAGAIN);
    shm::unlock(other.get());
    CHECK(shm::lock_exclusive(remover.get()) == 0);
    CHECK(shm::lock_shared(one.get()) == EAGAIN);
}

TEST_CASE("a process does not count its own lock") {
    const locked_file f;
    const shm::unique_fd own = f.open();
    REQUIRE(shm::lock_shared(own.get()) == 0);
    CHECK_FALSE(shm::is_locked_elsewhere(own.get()));
    CHECK(shm::lock_exclusive(own.get()) == 0);
}

TEST_CASE("a forked child keeps the lock of its parent until it ends") {
    const locked_file f;
    shm::unique_fd own = f.open();
    const shm::unique_fd asks = f.open();
    REQUIRE(shm::lock_shared(own.get()) == 0);
    child worker([] {
        for (;;) ::pause();
    });
    own.reset();
    CHECK(shm::is_locked_elsewhere(asks.get()));
    worker.end();
    CHECK_FALSE(shm::is_locked_elsewhere(asks.get()));
}

TEST_CASE("a program that a process starts keeps no lock of it") {
    const locked_file f;
    shm::unique_fd own = f.open();
    const shm::unique_fd asks = f.open();
    REQUIRE(shm::lock_shared(own.get()) == 0);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const shm::unique_fd begun(ends[0]);
    shm::unique_fd closed_by_exec(ends[1]);
    const child program([] { ::execl("/bin/sleep", "sleep", "60", nullptr); });
    closed_by_exec.reset();
    char byte = 0;
    REQUIRE(::read(begun.get(), &byte, 1) == 0);
    own.reset();
    CHECK_FALSE(shm::is_locked_elsewhere(asks.get()));
}

TEST_CASE("an unknown state of a lock counts as locked") { CHECK(shm::is_locked_elsewhere(-1)); }
