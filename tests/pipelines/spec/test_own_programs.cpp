// The report for one of our programs that a first launch has not built.

#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "spec/programs.hpp"
#include "tests/pipelines/spec/world.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

std::string refusal_of_ours(const std::string& folder, const std::string& takes = "") {
    try {
        return "found " + program_of_ours("carousel-peek", folder, takes);
    } catch (const config_error& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("a stage that the build folder lists can be built, another one can't, nor can any elsewhere") {
    const world w;
    CHECK(command_to_build("carousel-vertex", w.folder()).empty());
    w.write("programs.txt", "carousel-geometry\ncarousel-vertex\n");
    CHECK(command_to_build("carousel-vertex", w.folder()) ==
          "cmake --build " + w.folder() + " --target carousel-vertex");
    CHECK(command_to_build("carousel-vert", w.folder()).empty());
    CHECK(command_to_build("", w.folder()).empty());
}

TEST_CASE("an unbuilt program of ours is named with its needs and the command that builds it") {
    const world w;
    CHECK(refusal_of_ours(w.folder()) ==
          w.path("carousel-peek") +
              " does not exist; it comes with an installation of all programs (cmake --install)");
    w.write("CMakeCache.txt", "");
    CHECK(refusal_of_ours(w.folder()) == w.path("carousel-peek") +
                                             " does not exist; build it: cmake --build " + w.folder() +
                                             " --target carousel-peek");
    CHECK_THAT(refusal_of_ours(w.folder(), "the page takes a library"),
               contains("does not exist: the page takes a library; build it: "));
    w.program("carousel-peek", "true");
    CHECK(refusal_of_ours(w.folder()) == "found " + w.path("carousel-peek"));
}

TEST_CASE("a process becomes a program by path or name, and a missing one reports the attempts") {
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            exec_program({"sh", "-c", "exit 42"}, std::cout);
        } catch (const config_error&) {
            ::_exit(1);
        }
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 42);
    CHECK_THROWS_WITH(exec_program({"/nowhere/carousel-none"}, std::cout),
                      contains("starting /nowhere/carousel-none: No such file or directory"));
}
