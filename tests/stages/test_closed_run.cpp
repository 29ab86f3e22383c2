// The real runner with a closed control block (shm/block_guard.hpp): all writes of frames, clocks, counts and
// heartbeats by the runner and its threads are made in a scope. One process runs all stages, so their pages
// are closed as one; tests/crash shows that a process opens no more than its own pages.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ring/exit_notes.hpp"
#include "ring/own_pages.hpp"
#include "shm/block_guard.hpp"
#include "stages/runner/exit_note.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::test;
using shm::block_guard;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr const char* no_threads = "ThreadSanitizer does not follow threads that are made behind a fork";
#else
constexpr const char* no_threads = nullptr;
#endif

void close_all(threads_of_a_run& run, block_guard how) {
    const shm::control_block& c = run.control();
    ring::page_list all;
    for (u32 seat = 0; seat < c.seats; ++seat) {
        const u32 entry = ring::seat_word::of(ring::load(c.seat[seat].current)).entry;
        const ring::page_list own = ring::pages_of(c, {seat, entry, 1}, 0);
        for (const shm::page_range& r : own.pages())
            all.add(c, reinterpret_cast<const std::byte*>(&c) + r.from, r.bytes);
    }
    need(shm::guard_block(run.control(), all.pages(), how) == how);
}

void check_runs(block_guard how) {
    CHECK(in_child([&] {
              threads_of_a_run run({.stages = 3, .frames = 200, .work_us = 20});
              close_all(run, how);
              run.run();
              need(run.sink().frames.load() == 200 && run.sink().wrong.load() == 0);
              ::_exit(0);  // the block is closed permanently: an allocator may write into freed memory
          }) == went_through);
    CHECK(in_child([&] {  // threads that finish
              threads_of_a_run run({.stages = 2, .frames = 100, .finish_threads = 3});
              close_all(run, how);
              run.run();
              need(run.sink().frames.load() == 100);
              ::_exit(0);
          }) == went_through);
}

/// A thread's outermost scopes from one call to the next: the minimum, which is a frame without a wait.
struct scope_count {
    u64 last = 0, calls = 0, least = ~u64{0};
    void check() {
        const u64 now = shm::scopes_of_this_thread();
        if (calls++ > 0) least = std::min(least, now - last);
        last = now;
    }
};

struct scopes_of_a_frame {
    u32 stage;
    u64 main, completion;
};

void check_scopes(const scopes_of_a_frame& wanted, u64 work_us) {
    CAPTURE(wanted.stage);
    CHECK(in_child([&] {
              // Only the stage under test is slow: its frames wait for it, and there is room downstream of
              // it.
              threads_of_a_run run({.stages = 3, .frames = 300});
              scope_count main, completion;
              run.stage(wanted.stage).at_process = [&] {
                  main.check();
                  std::this_thread::sleep_for(std::chrono::microseconds(work_us));
              };
              run.stage(wanted.stage).at_committed = [&](u64) { completion.check(); };
              close_all(run, block_guard::emulated);
              run.run();
              std::printf("stage %u: %llu and %llu scopes\n", wanted.stage,
                          static_cast<unsigned long long>(main.least),
                          static_cast<unsigned long long>(completion.least));
              std::fflush(stdout);
              need(main.calls == 300 && main.least == wanted.main);
              need(completion.calls == 300 && completion.least == wanted.completion);
              ::_exit(0);
          }) == went_through);
}

}  // namespace

TEST_CASE("a frame that finds its input takes two scopes on the main thread, three at completion") {
    if (no_threads != nullptr) CAROUSEL_SKIP(no_threads);
    check_scopes({1, 2, 3}, 500);
}

TEST_CASE("a stage's own code is called outside of any write scope, on any thread") {
    if (no_threads != nullptr) CAROUSEL_SKIP(no_threads);
    const u32 finish_threads = GENERATE(1U, 3U);
    CAPTURE(finish_threads);
    CHECK(in_child([&] {
              threads_of_a_run run({.stages = 3,
                                    .frames = 100,
                                    .finish_threads = finish_threads,
                                    .at_finish = [](carousel::frame&) { need(!shm::is_open_here()); }});
              for (u32 k = 0; k < 3; ++k) {
                  run.stage(k).at_process = [] { need(!shm::is_open_here()); };
                  run.stage(k).at_committed = [](u64) { need(!shm::is_open_here()); };
                  run.stage(k).at_ready = [](u64, u64) { return need(!shm::is_open_here()), true; };
              }
              close_all(run, block_guard::emulated);
              run.run();
              need(run.sink().frames.load() == 100);
              ::_exit(0);
          }) == went_through);
}

TEST_CASE("runners work with a control block closed by a protection key") {
    if (no_threads != nullptr) CAROUSEL_SKIP(no_threads);
    if (!shm::has_protection_keys()) CAROUSEL_SKIP(shm::why_no_keys());
    check_runs(block_guard::keys);
}

TEST_CASE("runners work with a control block closed by emulation") {
    if (no_threads != nullptr) CAROUSEL_SKIP(no_threads);
    check_runs(block_guard::emulated);
}

TEST_CASE("a source, a stage and a sink each write only to pages of their own process") {
    if (no_threads != nullptr) CAROUSEL_SKIP(no_threads);
    for (const block_guard how : {block_guard::pages, block_guard::emulated, block_guard::keys}) {
        if (how == block_guard::keys && !shm::has_protection_keys()) continue;
        CAPTURE(static_cast<int>(how));
        threads_of_a_run run({.stages = 3, .frames = 200, .work_us = 20, .guard = how});
        CHECK(run.run_as_processes());
        threads_of_a_run ending({.stages = 4, .frames = 60, .finish_threads = 3, .guard = how});
        CHECK(ending.run_as_processes());
    }
}

TEST_CASE("a stage's own write to a closed control block ends it, and its note has the address") {
    const auto how = shm::has_protection_keys() ? block_guard::keys : block_guard::emulated;
    // The entry lies in memory that both processes share.
    void* const at = ::mmap(nullptr, sizeof(shm::control_block), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(at != MAP_FAILED);
    auto& c = *static_cast<shm::control_block*>(at);
    CHECK(in_child([&] {
              ring::page_list own;
              own.add(c, &c.entry[5], sizeof c.entry[5]);
              own.add(c, &c.link[2].tail, 8);
              need(shm::guard_block(c, own.pages(), how) == how);
              stages::install_exit_note(c.entry[5]);
              c.link[2].slot[3].store(7);
          }) == faulted);
    CHECK(ring::exit_note::of(c.entry[5].exit_note.load()).signal == SIGSEGV);
    const ring::wild_write reported = ring::wild_write::of(c.entry[5].wild_write.load());
    CHECK(reported.what == ring::wild_write_target::block);
    CHECK(reported.index == static_cast<u32>(shm::block_part::ring_words));
    CHECK(reported.slot == 2);
    CHECK(reported.offset == offsetof(shm::link_block, slot) + 24 - offsetof(shm::link_block, tail));
    CHECK(c.link[2].slot[3].load() == 0);
    ::munmap(at, sizeof(shm::control_block));
}
