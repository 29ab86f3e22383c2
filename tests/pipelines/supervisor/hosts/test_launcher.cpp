// The error messages if a command for `carousel host` on another machine fails before it runs there.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "core/clock.hpp"
#include "supervisor/hosts/launcher.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using carousel::test::contains;

namespace {

host_spec by_ssh() {
    host_spec h;
    h.name = "b";
    h.address = "127.0.0.1";
    h.launcher = launcher_kind::ssh;
    return h;
}

}  // namespace

TEST_CASE("an ssh that does not get the whole token is ended, and the run reports it") {
    const scratch_folder folder;
    ::chmod(folder.write("ssh", "#!/bin/sh\nexec sleep 1000\n").c_str(), 0700);
    const char* const found = std::getenv("PATH");
    REQUIRE(found != nullptr);
    const std::string path = found;
    ::setenv("PATH", fmt::format("{}:{}", folder.path.string(), path).c_str(), 1);
    launcher l(by_ssh(), {}, std::string(1U << 20U, 't'));  // more than a pipe holds
    l.start(now_ns());
    ::setenv("PATH", path.c_str(), 1);
    CHECK(l.new_failure() ==
          "host b can't be started: ssh: sending the token to it: it is longer than a pipe holds");
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
    CHECK(l.new_failure().empty());
}

TEST_CASE("a supervisor without descriptors reports that it can't start a host for that reason") {
    launcher l(by_ssh(), {}, "token");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{3, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    l.start(now_ns());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_THAT(l.new_failure(), contains("host b can't be started: ssh: creating a pipe to it: "));
}
