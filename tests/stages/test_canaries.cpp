// Rings with canaries behind their slots, by real runners as threads of one process (in_process.hpp): a frame
// whose maker has written beyond its slot isn't committed, one that is damaged later is told as torn.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/errors.hpp"
#include "device/canary.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

struct ending {
    int code = -1;  ///< -1: by a signal
    u64 committed = 0;
    std::string log;
};

/// A run of two stages in a process of its own, whose source writes so many bytes beyond its slot at
/// frame 20.
ending overrun(bool canaries, u64 bytes) {
    int said[2], log[2];
    REQUIRE(::pipe(said) == 0);
    REQUIRE(::pipe(log) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(60);
        ::dup2(log[1], STDERR_FILENO);
        for (const int fd : {said[0], log[0], log[1]}) ::close(fd);
        threads_of_a_run run(
            {.stages = 2, .frames = 60, .canaries = canaries, .stray_at = 20, .stray_bytes = bytes});
        run.source().at_committed = [&](u64 sequence) {
            (void)!::write(said[1], &sequence, sizeof sequence);
        };
        run.run();
        ::_exit(0);
    }
    ::close(said[1]);
    ::close(log[1]);
    ending e;
    for (u64 sequence = 0; ::read(said[0], &sequence, sizeof sequence) > 0;) ++e.committed;
    char text[4096];
    for (ssize_t n = 0; (n = ::read(log[0], text, sizeof text)) > 0;)
        e.log.append(text, static_cast<std::size_t>(n));
    ::close(said[0]);
    ::close(log[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) e.code = WEXITSTATUS(status);
    return e;
}

}  // namespace

TEST_CASE("frames of rings with canaries come whole, once and in order, and their makers alone commit them") {
    threads_of_a_run run({.stages = 3, .frames = 300, .work_us = 20, .canaries = true});
    run.run();
    CHECK(run.sink().frames.load() == 300);
    CHECK(run.sink().wrong.load() == 0);
    for (u32 k = 0; k < 3; ++k) {
        CHECK(run.control().stage[k].counters.torn.load() == 0);
        CHECK(run.control().stage[k].counters.helped.load() == 0);
        CHECK(run.counts(k).status_steps.load() == 2 * 300);
    }
}

TEST_CASE("a write beyond a slot with a canary ends its writer before the frame is committed, and is told") {
    for (const u64 bytes : {u64{0}, u64{100}, device::canary_bytes - 1}) {
        CAPTURE(bytes);
        const ending e = overrun(true, bytes);
        INFO(e.log);
        CHECK(e.code == exit_code::stage_exception);
        CHECK(e.committed == 20);
        CHECK(e.log.find("frame 20: a write beyond its slot in the ring stage0, behind plane value, " +
                         std::to_string(bytes) + " bytes behind its end") != std::string::npos);
    }
}

TEST_CASE("control: without canaries the same write goes unseen") {
    const ending e = overrun(false, 100);
    INFO(e.log);
    CHECK(e.code == 0);
    CHECK(e.committed == 60);
}

TEST_CASE("a canary that is damaged behind its frame's commit makes that frame torn, once") {
    threads_of_a_run run({.stages = 3, .frames = 100, .canaries = true});
    run.source().at_committed = [&](u64 sequence) {
        if (sequence == 30) run.behind(0, 30)[1000] ^= std::byte{1};  // nobody reads it yet
    };
    run.run();
    CHECK(run.sink().frames.load() == 100);
    CHECK(run.sink().wrong.load() == 0);
    CHECK(run.control().stage[0].counters.torn.load() == 0);
    CHECK(run.control().stage[1].counters.torn.load() == 1);
    CHECK(run.control().stage[2].counters.torn.load() == 0);
}
