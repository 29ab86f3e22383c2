#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/fd_socket.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;

TEST_CASE("a message arrives whole, with descriptors of the same files, closed on exec") {
    auto [a, b] = shm::socket_pair();
    const shm::unique_fd file(memfd_create("carousel-test", MFD_CLOEXEC));
    REQUIRE(shm::send_message(a.get(), "hello", {file.get(), file.get()}));
    shm::message m;
    REQUIRE(shm::receive_message(b.get(), m) == shm::receive_status::ok);
    CHECK(m.text == "hello");
    REQUIRE(m.fds.size() == 2);
    struct stat sent {
    }, got{};
    fstat(file.get(), &sent);
    fstat(m.fds[0].get(), &got);
    CHECK(sent.st_ino == got.st_ino);
    CHECK((fcntl(m.fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("listening at a path changes no mode of files that other threads create meanwhile") {
    const scratch_folder folder;
    const std::string path = (folder.path / "socket").string(), file = (folder.path / "file").string();
    const auto mode_of = [](const std::string& of) {
        struct stat is {};
        return ::stat(of.c_str(), &is) == 0 ? is.st_mode & 0777U : 0U;
    };
    ::close(::open(file.c_str(), O_CREAT | O_WRONLY, 0666));
    const unsigned usual = mode_of(file);
    std::atomic<bool> listening = false, stop = false;
    std::thread listener([&] {
        do {
            (void)shm::listen_at(path);
            listening = true;
        } while (!stop);
    });
    while (!listening) std::this_thread::yield();
    // For a time, not a number of files: on a busy machine the two threads alternate every few milliseconds.
    u32 changed = 0;
    for (const u64 end = now_ns() + 300 * ns_per_ms; now_ns() < end && changed == 0;) {
        ::unlink(file.c_str());
        ::close(::open(file.c_str(), O_CREAT | O_WRONLY, 0666));
        changed += mode_of(file) != usual ? 1 : 0;
    }
    stop = true;
    listener.join();
    CHECK(changed == 0);
    CHECK(mode_of(path) == 0600);
}

TEST_CASE("a peer that is gone reads as closed, and sending to it fails without a signal") {
    auto [a, b] = shm::socket_pair();
    b.reset();
    shm::message m;
    CHECK(shm::receive_message(a.get(), m) == shm::receive_status::closed);
    CHECK_FALSE(shm::send_message(a.get(), "anybody?"));
}

TEST_CASE("an empty socket reads as would_block") {
    auto [a, b] = shm::socket_pair();
    shm::message m;
    CHECK(shm::receive_message(a.get(), m) == shm::receive_status::would_block);
    CHECK(shm::receive_message(a.get(), m, 5'000'000) == shm::receive_status::would_block);
}

TEST_CASE("a message that is too long is refused, not cut") {
    auto [a, b] = shm::socket_pair();
    CHECK_FALSE(shm::send_message(a.get(), std::string(shm::max_message + 1, 'x')));
    CHECK(errno == EMSGSIZE);
}

TEST_CASE("a listening socket is accessible only to its user and identifies the connecting process") {
    const std::string path = "/tmp/carousel-test-" + std::to_string(getpid()) + ".sock";
    const shm::unique_fd listener = shm::listen_at(path);
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    const shm::unique_fd client = shm::connect_to(path);
    REQUIRE(client);
    CHECK(shm::peer_of(client.get()).uid == getuid());
    unlink(path.c_str());
}

TEST_CASE("a supervisor of another user is not talked to") {
    if (getuid() != 0) CAROUSEL_SKIP("only root can become another user");
    char folder[] = "/tmp/carousel-test-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    REQUIRE(chmod(folder, 0777) == 0);
    const std::string path = std::string(folder) + "/control.sock";
    auto [ours, theirs] = shm::socket_pair();
    const pid_t other_user = fork();
    if (other_user == 0) {
        const bool switched = setgid(65534) == 0 && setuid(65534) == 0;
        const shm::unique_fd listener = switched ? shm::listen_at(path) : shm::unique_fd();
        (void)shm::send_message(theirs.get(), listener ? "listening" : "failed");
        for (;;) pause();
    }
    shm::message m;
    REQUIRE(shm::receive_message(ours.get(), m, 5'000'000'000) == shm::receive_status::ok);
    REQUIRE(m.text == "listening");
    const shm::unique_fd connection = shm::connect_to(path);
    CHECK_FALSE(connection);
    CHECK(errno == EPERM);
    kill(other_user, SIGKILL);
    waitpid(other_user, nullptr, 0);
    unlink(path.c_str());
    rmdir(folder);
}

TEST_CASE("a socket path that is too long is refused with the remedy") {
    try {
        (void)shm::listen_at("/tmp/" + std::string(200, 'x'));
        FAIL("accepted");
    } catch (const shm_error& e) {
        CHECK(std::string(e.what()).find("shorter") != std::string::npos);
    }
}
