#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <thread>

#include "core/clock.hpp"
#include "shm/doorbell.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

namespace {
// Shared with forked children: the doorbell must work between processes, which std::atomic::wait does not.
struct shared_bell {
    shm::doorbell_word* bell;
    shared_bell() {
        void* at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        REQUIRE(at != MAP_FAILED);
        bell = new (at) shm::doorbell_word{};
    }
    ~shared_bell() { munmap(bell, 4096); }
};
}  // namespace

TEST_CASE("a ring wakes a sleeper in another process") {
    const shared_bell s;
    const u32 seen = shm::ticket(*s.bell);  // a child that starts late has not missed the ring
    const pid_t child = fork();
    if (child == 0) {
        bool rung = false;
        for (int k = 0; k < 50 && !rung; ++k) rung = shm::wait(*s.bell, seen, shm::max_sleep_ns);
        _exit(rung ? 0 : 1);
    }
    usleep(50'000);
    shm::ring(*s.bell);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a ring between the ticket and the sleep is not slept through") {
    const shared_bell s;
    const u32 seen = shm::ticket(*s.bell);
    shm::ring(*s.bell);
    CHECK(shm::wait(*s.bell, seen, shm::max_sleep_ns));
}

TEST_CASE("a sleep that no process ends has a timeout") {
    const shared_bell s;
    const u64 began = now_ns();
    CHECK_FALSE(shm::wait(*s.bell, shm::ticket(*s.bell), ~u64{0}));
    CHECK(now_ns() - began < 20 * shm::max_sleep_ns);
}

TEST_CASE("a sleeper that was killed leaves the doorbell working") {
    const shared_bell s;
    const pid_t child = fork();
    if (child == 0) {
        for (;;) shm::wait(*s.bell, shm::ticket(*s.bell), shm::max_sleep_ns);
    }
    usleep(30'000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const u32 seen = shm::ticket(*s.bell);
    std::thread ringer([&] {
        usleep(20'000);
        shm::ring(*s.bell);
    });
    bool rung = false;
    for (int k = 0; k < 50 && !rung; ++k) rung = shm::wait(*s.bell, seen, shm::max_sleep_ns);
    ringer.join();
    CHECK(rung);
}
