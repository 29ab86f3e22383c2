// Messages to a service manager and to systemd's journal: addresses, variables, datagrams.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "os/console.hpp"
#include "os/journal.hpp"
#include "os/notify_socket.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

namespace {

using namespace carousel;
using namespace carousel::supervisor;

/// A bound datagram socket. `name`: a path, or '@' and the name of an abstract one.
class receiver {
public:
    explicit receiver(std::string name)
        : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        REQUIRE(name.size() <= sizeof at.sun_path);
        if (name.front() == '@') name.front() = '\0';
        std::memcpy(at.sun_path, name.data(), name.size());
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
        REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at), length) == 0);
    }
    /// The next datagram; "" if there is none.
    [[nodiscard]] std::string next() const {
        char bytes[4096];
        const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, 0);
        return n < 0 ? "" : std::string(bytes, static_cast<std::size_t>(n));
    }

private:
    shm::unique_fd fd_;
};

/// Sets a variable for the time of a test case.
class variable {
public:
    variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    ~variable() { ::unsetenv(name_); }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;

private:
    const char* name_;
};

}  // namespace

TEST_CASE("a message reaches a socket with a path and an abstract socket as one datagram") {
    const scratch_folder folder;
    for (const std::string& address :
         {(folder.path / "notify").string(), fmt::format("@carousel-test-{}", ::getpid())}) {
        INFO(address);
        const receiver manager(address);
        const notify_socket to(address);
        REQUIRE(to.is_open());
        CHECK(to.send("READY=1\nSTATUS=running"));
        CHECK(manager.next() == "READY=1\nSTATUS=running");
        CHECK(manager.next().empty());
    }
}

TEST_CASE("an address that is relative, empty or too long counts as no service manager") {
    for (const std::string& address : {std::string(), std::string("@"), std::string("relative/path"),
                                       std::string("vsock:2:1"), "/" + std::string(200, 'x')})
        CHECK_FALSE(notify_socket(address).is_open());
    CHECK_FALSE(notify_socket().send("READY=1"));
}

TEST_CASE("a message to a manager that has ended is refused, and delivered once it is back") {
    const scratch_folder folder;
    const std::string address = (folder.path / "notify").string();
    const notify_socket to(address);
    CHECK_FALSE(to.send("READY=1"));
    const receiver manager(address);
    CHECK(to.send("READY=1"));
    CHECK(manager.next() == "READY=1");
}

TEST_CASE("the full queue of a manager that does not read refuses a message instead of blocking") {
    const scratch_folder folder;
    const std::string address = (folder.path / "notify").string();
    const receiver manager(address);
    const notify_socket to(address);
    int accepted = 0;
    while (accepted < 100'000 && to.send("STATUS=running")) ++accepted;
    CHECK(accepted > 0);
    CHECK(accepted < 100'000);
}

TEST_CASE("the watchdog's period is that of the environment, unless it names another process") {
    const variable socket("NOTIFY_SOCKET", "/run/none"), period("WATCHDOG_USEC", "3000000");
    CHECK(notify_socket::of_environment().watchdog_ns() == 3'000'000'000);
    {
        const variable own("WATCHDOG_PID", std::to_string(::getpid()));
        CHECK(notify_socket::of_environment().watchdog_ns() == 3'000'000'000);
    }
    const variable other("WATCHDOG_PID", std::to_string(::getppid()));
    CHECK(notify_socket::of_environment().watchdog_ns() == 0);
}

TEST_CASE("an entry of the journal has level, stage, pid and pipeline as fields") {
    CHECK(journal_datagram({log::level::warning, "fragment", 17, "demo", "warning: late"}) ==
          "PRIORITY=4\nSYSLOG_IDENTIFIER=fragment\nSTAGE=fragment\nSTAGE_PID=17\nPIPELINE=demo\n"
          "MESSAGE=warning: late\n");
    const std::string two = journal_datagram({log::level::info, "a", 1, "", "x\ny"});
    CHECK(two.ends_with(std::string("MESSAGE\n\x03\0\0\0\0\0\0\0x\ny\n", 20)));
}

TEST_CASE("a descriptor is the journal's stream if JOURNAL_STREAM has its device and inode") {
    CHECK_FALSE(is_journal(STDERR_FILENO));
    struct stat info {};
    REQUIRE(::fstat(STDERR_FILENO, &info) == 0);
    const std::string own = fmt::format("{}:{}", info.st_dev, info.st_ino);
    {
        const variable stream("JOURNAL_STREAM", own);
        CHECK(is_journal(STDERR_FILENO));
        CHECK_FALSE(is_journal(-1));
    }
    for (const std::string& bad : {std::string(), std::string("1"), std::string(":"), own + "x", own + "0"}) {
        const variable stream("JOURNAL_STREAM", bad);
        INFO(bad);
        CHECK_FALSE(is_journal(STDERR_FILENO));
    }
}

TEST_CASE("lines go to the journal with their level, and to the descriptor if it accepts none") {
    const scratch_folder folder;
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    const shm::unique_fd read(ends[0]), write(ends[1]);
    console out(write.get(), false, false);
    const std::string path = (folder.path / "journal").string();
    {
        const receiver journald(path);
        out.use(journal(path), "demo");
        out.line_of({log::level::error, "vertex", 5, {}, "error: broken"}, "vertex | error: broken");
        CHECK(journald.next() == journal_datagram({log::level::error, "vertex", 5, "demo", "error: broken"}));
        out.line_of({log::level::error, "vertex", 5, {}, "  at line 3"}, "vertex |   at line 3");
        CHECK(journald.next() == journal_datagram({log::level::error, "vertex", 5, "demo", "  at line 3"}));
        out.status("demo: running");
        CHECK(journald.next().empty());
    }
    out.line_of({log::level::info, "vertex", 5, {}, "ready"}, "vertex | ready");
    char bytes[256];
    const ssize_t n = ::read(read.get(), bytes, sizeof bytes);
    REQUIRE(n > 0);
    CHECK(std::string(bytes, static_cast<std::size_t>(n)) == "vertex | ready\n");
}

TEST_CASE("a console with a threshold prints errors and what continues them, and no progress line") {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    const shm::unique_fd read(ends[0]), write(ends[1]);
    console out(write.get(), false, false);
    out.set_threshold(log::level::warning);
    for (const char* text :
         {"begins", "error: broken", "    the last line", "ends", "  not this", "warning: late"})
        out.line(text);
    out.status("demo: running");
    char bytes[256];
    const ssize_t n = ::read(read.get(), bytes, sizeof bytes);
    REQUIRE(n > 0);
    CHECK(std::string(bytes, static_cast<std::size_t>(n)) ==
          "error: broken\n    the last line\nwarning: late\n");
}
