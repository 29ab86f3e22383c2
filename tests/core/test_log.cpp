#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

namespace {
// The text that is written to stderr while the object exists.
struct captured_stderr {
    int pipe_ends[2] = {-1, -1};
    int saved = -1;
    captured_stderr() {
        REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
        saved = dup(STDERR_FILENO);
        dup2(pipe_ends[1], STDERR_FILENO);
    }
    ~captured_stderr() { restore(); }
    void restore() {
        if (saved < 0) return;
        dup2(saved, STDERR_FILENO);
        close(saved);
        saved = -1;
    }
    std::string read_all() {
        char text[512];
        const auto got = ::read(pipe_ends[0], text, sizeof text);
        return {text, got > 0 ? static_cast<std::size_t>(got) : 0};
    }
};
}  // namespace

TEST_CASE("a log line is one line with its level") {
    captured_stderr c;
    log::warning("slot {} is late", 7);
    c.restore();
    CHECK(c.read_all() == "warning: slot 7 is late\n");
}

TEST_CASE("a log without a reader does not end the process") {
    captured_stderr c;
    std::signal(SIGPIPE, SIG_IGN);
    close(c.pipe_ends[0]);
    log::error("nobody reads this");
    c.restore();
    SUCCEED("still here");
}

TEST_CASE("errors carry the documented exit code of their kind") {
    CHECK(config_error("x").code() == 2);
    CHECK(device_error("x").code() == 3);
    CHECK(cuda_error(700, "x").code() == 70);
    CHECK(cuda_error(700, "x").status() == 700);
    CHECK(shm_error("x").code() == 74);
}
