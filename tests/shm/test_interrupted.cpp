// Waits under a program's timer, whose signals interrupt the system calls that wait: each wait lasts as long
// as specified. A second run of these cases interrupts also calls that the kernel seldom interrupts
// (CMakeLists.txt).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "shm/fd_socket.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/signal_timer.hpp"

using namespace carousel;
using test::block_signals;
using test::signal_timer;

namespace {
constexpr u64 late_ns = 100 * ns_per_ms, patience_ns = 20 * ns_per_s;

/// Calls `what` after `late_ns`, on a thread that receives no signals.
template <typename F>
std::thread later(F what) {
    return std::thread([what = std::move(what)]() mutable {
        block_signals();
        std::this_thread::sleep_for(std::chrono::nanoseconds(late_ns));
        what();
    });
}
}  // namespace

TEST_CASE("a program's timer does not shorten the wait for a message") {
    auto [ours, theirs] = shm::socket_pair();
    std::thread sender = later([to = theirs.get()] { (void)shm::send_message(to, "late"); });
    const signal_timer timer;
    shm::message m;
    CHECK(shm::receive_message(ours.get(), m, patience_ns) == shm::receive_status::ok);
    CHECK(m.text == "late");
    sender.join();
    const u64 began = now_ns();
    CHECK(shm::receive_message(ours.get(), m, late_ns) == shm::receive_status::would_block);
    CHECK(now_ns() - began >= late_ns);
}

TEST_CASE("a message waits for room up to its timeout, and a full socket delays no other sender") {
    auto [ours, theirs] = shm::socket_pair();
    const std::string text(50'000, 'x');
    while (shm::send_message(ours.get(), text)) {
    }
    CHECK(errno == EAGAIN);
    const signal_timer timer;
    const u64 began = now_ns();
    CHECK_FALSE(shm::send_message(ours.get(), text, {}, late_ns));
    CHECK(now_ns() - began >= late_ns);
    std::thread reader = later([from = theirs.get()] {
        shm::message m;
        while (shm::receive_message(from, m) == shm::receive_status::ok) {
        }
    });
    CHECK(shm::send_message(ours.get(), text, {}, patience_ns));
    reader.join();
}

TEST_CASE("a program's timer does not end the wait for a listener that accepts late") {
    const scratch_folder folder;
    const std::string path = folder.path / "late.sock";
    const shm::unique_fd listener = shm::listen_at(path);
    REQUIRE(::listen(listener.get(), 0) == 0);  // one connection waits, the next one's connect() blocks
    const shm::unique_fd first = shm::connect_to(path, patience_ns);
    REQUIRE(first);
    const signal_timer timer;
    const u64 began = now_ns();
    CHECK_FALSE(shm::connect_to(path, late_ns));
    CHECK(errno == EAGAIN);
    CHECK(now_ns() - began >= late_ns);
    std::thread accepts = later([at = listener.get()] {
        shm::unique_fd one;
        do {
            one.reset(::accept4(at, nullptr, nullptr, SOCK_CLOEXEC));
        } while (!one && errno == EINTR);
    });
    CHECK(shm::connect_to(path, patience_ns));
    accepts.join();
}

TEST_CASE("a wait for a descriptor ends at its deadline and not at a signal") {
    auto [ours, theirs] = shm::socket_pair();
    const signal_timer timer(1'000);
    const u64 deadline = now_ns() + late_ns;
    CHECK(events_of(ours.get(), POLLIN, deadline) == 0);
    CHECK(now_ns() >= deadline);
    REQUIRE(shm::send_message(theirs.get(), "here"));
    CHECK((events_of(ours.get(), POLLIN) & POLLIN) != 0);
    CHECK(events_of(-1, POLLIN) == 0);
}

TEST_CASE("room for a file is reserved whole under a program's timer") {
    const shm::unique_fd file(::memfd_create("carousel-test", MFD_CLOEXEC));
    const signal_timer timer(2'000);
    constexpr u64 bytes = u64{48} << 20U;
    REQUIRE(reserve_whole(file.get(), 0, bytes) == 0);
    struct stat info {};
    REQUIRE(::fstat(file.get(), &info) == 0);
    CHECK(static_cast<u64>(info.st_blocks) * 512 >= bytes);
}
