// Rings with canaries after their slots, with real runners as threads of one process (in_process.hpp): a
// frame whose maker has written past its slot isn't committed, one that is damaged later is reported as torn.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>

#include "core/errors.hpp"
#include "device/canary.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

struct ending {
    int code = -1;  ///< -1: it was ended by a signal
    u64 committed = 0;
    std::string log;
};

/// Runs the pipeline in a separate process.
ending ending_of(
    const threads_of_a_run::options& options,
    const std::function<void(counting_stage& source)>& prepare = [](counting_stage&) {}) {
    int result_pipe[2], log[2];
    REQUIRE(::pipe(result_pipe) == 0);
    REQUIRE(::pipe(log) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(60);
        ::dup2(log[1], STDERR_FILENO);
        for (const int fd : {result_pipe[0], log[0], log[1]}) ::close(fd);
        threads_of_a_run run(options);
        prepare(run.source());
        run.source().at_committed = [&, also = run.source().at_committed](u64 frame_number) {
            (void)!::write(result_pipe[1], &frame_number, sizeof frame_number);
            if (also) also(frame_number);
        };
        run.run();
        ::_exit(0);
    }
    ::close(result_pipe[1]);
    ::close(log[1]);
    ending e;
    for (u64 frame_number = 0; ::read(result_pipe[0], &frame_number, sizeof frame_number) > 0;) ++e.committed;
    char text[4096];
    for (ssize_t n = 0; (n = ::read(log[0], text, sizeof text)) > 0;)
        e.log.append(text, static_cast<std::size_t>(n));
    ::close(result_pipe[0]);
    ::close(log[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) e.code = WEXITSTATUS(status);
    return e;
}

/// Its source writes that many bytes past its slot at frame 20.
ending overrun(bool canaries, u64 bytes) {
    return ending_of(
        {.stages = 2, .frames = 60, .canaries = canaries, .wild_write_at = 20, .wild_write_bytes = bytes});
}

/// A write by the stage's own code, whose report is checked.
void wild_write_at(u64 frame_number, carousel::frame& f) {
    if (f.frame_number() != frame_number) return;
    auto* const end = reinterpret_cast<std::byte*>(f.output().plane<u64>("value").data());
    end[device::slot_alignment + 100] ^= std::byte{1};  // past its only plane, which is padded
}
std::string canary_message(u64 frame_number) {
    return "frame " + std::to_string(frame_number) +
           ": a write beyond its slot in the ring stage0, after plane value, 100 bytes after its end";
}

}  // namespace

TEST_CASE("frames of rings with canaries arrive complete, once, in order, committed by their makers") {
    threads_of_a_run run({.stages = 3, .frames = 300, .work_us = 20, .canaries = true});
    run.stage(1).at_finish = [](carousel::frame&) {};
    run.stage(1).finish_threads = 3;
    run.run();
    CHECK(run.sink().frames.load() == 300);
    CHECK(run.sink().wrong.load() == 0);
    for (u32 k = 0; k < 3; ++k) {
        CHECK(run.control().stage[k].counters.torn.load() == 0);
        CHECK(run.control().stage[k].counters.helped.load() == 0);
        const u32 rechecks = k == 1 ? 300 : 0;  // after finish()
        CHECK(run.counts(k).status_steps.load() == 2 * 300 + rechecks);
    }
}

TEST_CASE("a write beyond a slot with a canary ends its writer before the commit and is reported") {
    for (const u64 bytes : {u64{0}, u64{100}, device::canary_bytes - 1}) {
        CAPTURE(bytes);
        const ending e = overrun(true, bytes);
        INFO(e.log);
        CHECK(e.code == exit_code::stage_exception);
        CHECK(e.committed == 20);
        CHECK(e.log.find("frame 20: a write beyond its slot in the ring stage0, after plane value, " +
                         std::to_string(bytes) + " bytes after its end") != std::string::npos);
    }
}

TEST_CASE("process() itself may write beyond a slot while its queue lags: reported as well") {
    // The source's queue works on frame 0 while process() writes past a slot that is new to the queue.
    const ending e = ending_of(
        {.stages = 2, .frames = 60, .work_us = 5000, .canaries = true},
        [](counting_stage& source) { source.at_frame = [](carousel::frame& f) { wild_write_at(1, f); }; });
    INFO(e.log);
    CHECK(e.code == exit_code::stage_exception);
    CHECK(e.committed == 1);
    CHECK(e.log.find(canary_message(1)) != std::string::npos);
}

TEST_CASE("a write beyond a slot in finish() ends its writer before the frame is committed") {
    const u32 threads = GENERATE(1U, 3U);
    CAPTURE(threads);
    const ending e =
        ending_of({.stages = 2, .frames = 60, .canaries = true}, [threads](counting_stage& source) {
            source.at_finish = [](carousel::frame& f) { wild_write_at(20, f); };
            source.finish_threads = threads;
        });
    INFO(e.log);
    CHECK(e.code == exit_code::stage_exception);
    CHECK(e.committed <= 20);  // with several threads the preceding frames may still be in progress
    CHECK(e.log.find(canary_message(20)) != std::string::npos);
}

TEST_CASE("a canary damaged while its slot is free is found after the slot's next frame") {
    // The slot of frame 0: the first free slot, at any time.
    std::byte* first = nullptr;
    std::atomic<u64> its_last{0};
    std::atomic<bool> is_free{false};
    const ending e = ending_of({.stages = 2, .frames = 2000, .canaries = true}, [&](counting_stage& source) {
        source.at_committed = [&](u64 frame_number) {
            if (frame_number > 20 && frame_number == its_last) is_free = true;
        };
        source.at_frame = [&, done = false](carousel::frame& f) mutable {
            auto* const at = reinterpret_cast<std::byte*>(f.output().plane<u64>("value").data());
            if (f.frame_number() == 0) first = at;
            if (at == first)
                its_last = f.frame_number(), is_free = false;
            else if (is_free && !std::exchange(done, true))
                first[device::slot_alignment + 100] ^= std::byte{1};
        };
    });
    INFO(e.log);
    CHECK(e.code == exit_code::stage_exception);
    CHECK(e.log.find(": a write beyond its slot in the ring stage0, after plane value, 100 bytes after its "
                     "end") != std::string::npos);
}

TEST_CASE("control: without canaries the same write is not detected") {
    const ending e = overrun(false, 100);
    INFO(e.log);
    CHECK(e.code == 0);
    CHECK(e.committed == 60);
}

TEST_CASE("a canary damaged after its frame's commit makes that frame torn, once") {
    threads_of_a_run run({.stages = 3, .frames = 100, .canaries = true});
    // No later frame has the slot, and the reader does not begin the frame before the write: it may check its
    // inputs first. Otherwise the scheduler would decide whether the damage is found.
    std::atomic<bool> is_damaged{false};
    run.source().at_committed = [&](u64 frame_number) {
        if (frame_number != 99) return;
        run.after_slot(0, 99)[1000] ^= std::byte{1};
        is_damaged = true;
    };
    run.stage(1).at_frame = [&](carousel::frame& f) {
        while (f.frame_number() == 98 && !is_damaged) std::this_thread::yield();
    };
    run.run();
    CHECK(run.sink().frames.load() == 100);
    CHECK(run.sink().wrong.load() == 0);
    CHECK(run.control().stage[0].counters.torn.load() == 0);
    CHECK(run.control().stage[1].counters.torn.load() == 1);
    CHECK(run.control().stage[2].counters.torn.load() == 0);
}
