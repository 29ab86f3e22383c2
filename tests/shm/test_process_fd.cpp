#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/process.hpp"
#include "shm/process_fd.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using test::in_child;
using test::need;

namespace {
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
}  // namespace

TEST_CASE("a forked child has no copy of its parent's own descriptors, and the parent keeps them") {
    shm::process_fd gone(shm::unique_fd(::dup(STDIN_FILENO)));
    shm::process_fd moved(shm::unique_fd(::dup(STDIN_FILENO)));
    const shm::process_fd kept(std::move(moved));
    const int number = kept.get();
    gone.reset();
    CHECK_FALSE(gone);
    CHECK_FALSE(moved);
    CHECK(in_child([&] {
              need(!kept && !is_open(number));
              const shm::process_fd its_own(shm::unique_fd(::dup(STDIN_FILENO)));
              need(its_own && is_open(its_own.get()));
          }) == test::went_through);
    CHECK(kept.get() == number);
    CHECK(is_open(number));
}

TEST_CASE("a forked child that outlives its parent's lock does not hold it") {
    const scratch_folder folder;
    const std::string path = folder.path / "lock";
    const auto open_file = [&] {
        return shm::unique_fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    };
    shm::process_fd lock(open_file());
    REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
    auto [ours, theirs] = shm::socket_pair();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ours.reset();
        (void)shm::send_message(theirs.get(), "here");
        shm::message m;
        (void)shm::receive_message(theirs.get(), m, 60 * ns_per_s);
        ::_exit(0);
    }
    shm::message m;
    REQUIRE(shm::receive_message(ours.get(), m, 20 * ns_per_s) == shm::receive_status::ok);
    const shm::unique_fd other = open_file();
    CHECK(::flock(other.get(), LOCK_EX | LOCK_NB) != 0);
    lock.reset();  // as the end of this process would
    CHECK(::flock(other.get(), LOCK_EX | LOCK_NB) == 0);
    ours.reset();
    REQUIRE(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE("an object is destroyed only by the process that created it") {
    static int ended = 0;
    struct noted {
        ~noted() { ++ended; }
    };
    owned_ptr<noted> one(new noted);
    CHECK(in_child([&] {
              one.reset();
              need(ended == 0);
          }) == test::went_through);
    one.reset();
    CHECK(ended == 1);
}
