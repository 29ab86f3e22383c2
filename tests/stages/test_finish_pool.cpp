// finish() of several frames at once: the pool by itself, and the real runner with it (in_process.hpp). Also
// one of the race tests: ./tests/run --all repeats them under ThreadSanitizer.
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/crash_point.hpp"
#include "ring/words.hpp"
#include "stages/runner/finish_pool.hpp"
#include "stages/runner/running_clock.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::test;
using stages::finish_clock;
using stages::finish_pool;

namespace {

void nothing(stages::frame_in_work&) {}

/// Waits, with a timeout that is far longer than any wait.
template <typename F>
bool wait_for(F&& holds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
}

}  // namespace

TEST_CASE("each part is done once, for any number of concurrent callers") {
    finish_pool pool(3, nothing, nothing);
    std::vector<std::thread> callers;
    std::atomic<u32> wrong{0};
    for (u32 c = 0; c < 4; ++c)
        callers.emplace_back([&, c] {
            for (u32 round = 0; round < 50; ++round) {
                const u32 parts = (c + round) % 9;
                std::vector<std::atomic<u32>> done(parts);
                pool.run_parts(parts, [&](u32 k) { done[k].fetch_add(1); });
                for (const auto& d : done) wrong.fetch_add(d.load() == 1 ? 0 : 1);
            }
        });
    for (std::thread& t : callers) t.join();
    CHECK(wrong.load() == 0);
}

TEST_CASE("threads without a frame take parts of another thread's frame") {
    finish_pool pool(2, nothing, nothing);
    std::atomic<u32> here{0};
    std::atomic<bool> together{true};
    pool.run_parts(3, [&](u32) {  // the caller and both other threads continue, or no thread does
        here.fetch_add(1);
        if (!wait_for([&] { return here.load() == 3; })) together.store(false);
    });
    CHECK(together.load());
}

TEST_CASE("an exception of a part is thrown at the call for the parts, and no further part begins") {
    finish_pool pool(2, nothing, nothing);
    std::atomic<u32> done{0};
    const auto asked = [&] {
        pool.run_parts(1000, [&](u32 k) {
            if (k == 3) throw std::runtime_error("part 3");
            done.fetch_add(1);
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        });
    };
    CHECK_THROWS_WITH(asked(), "part 3");
    CHECK(done.load() < 1000);
    done = 0;
    pool.run_parts(10, [&](u32) { done.fetch_add(1); });  // the pool is as usable as before
    CHECK(done.load() == 10);
}

TEST_CASE("the clock of host work runs since the oldest piece that is under way") {
    shm::word since{0};
    finish_clock clock(since);
    {
        const finish_clock::running hangs(clock);
        const u64 oldest = since.load();
        REQUIRE(oldest != 0);
        for (int k = 0; k < 3; ++k) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            const finish_clock::running quick(clock);
            CHECK(since.load() == oldest);  // later concurrent calls do not hide it
        }
        CHECK(since.load() == oldest);
        clock.restart();
        CHECK(since.load() > oldest);
    }
    CHECK(since.load() == 0);
    auto first = std::make_unique<finish_clock::running>(clock);
    const u64 before = since.load();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const finish_clock::running second(clock);
    first.reset();
    CHECK(since.load() > before);  // and a call that has ended does not count against the others
}

TEST_CASE("a full disk holds the process until its last thread has room, then its clocks restart") {
    const auto c = std::make_unique<shm::control_block>();
    shm::incarnation& entry = c->entry[0];
    finish_clock clock(entry.finishing_since_ns);
    stages::external_pause outside(entry, clock);
    stages::disk_full_pause pause(*c, outside);
    std::array<std::atomic<bool>, 2> full{true, true};
    std::array<std::atomic<u32>, 2> tries{0, 0};
    const auto write = [&](std::size_t k) {
        const finish_clock::running clocked(clock);
        pause.write_patiently(k, [&] {
            tries[k].fetch_add(1);
            if (full[k].load()) throw disk_full_error("/there/p.png", "no room");
        });
    };
    std::thread first(write, 0), second(write, 1);
    REQUIRE(wait_for([&] { return tries[0].load() > 0 && tries[1].load() > 0; }));
    full[0] = false;
    first.join();
    REQUIRE(wait_for([&, seen = tries[1].load()] { return tries[1].load() > seen; }));
    CHECK(entry.paused_since_ns.load() != 0);  // the second still waits
    CHECK(entry.pause.load() == static_cast<u64>(shm::pause_reason::disk_full));
    const u64 began = entry.finishing_since_ns.load();
    CHECK(began != 0);
    const finish_clock::running concurrent(clock);  // a concurrent hang is not charged with the pause either
    full[1] = false;
    second.join();
    CHECK(entry.paused_since_ns.load() == 0);
    CHECK(entry.pause.load() == 0);
    CHECK(entry.finishing_since_ns.load() > began);
}

TEST_CASE("several frames finish concurrently and out of order, and commit in order") {
    constexpr u64 frames = 200;
    std::mutex mutex;
    std::set<u64> finished;
    std::atomic<u64> next{0}, out_of_order{0}, unfinished{0}, alone{0};
    threads_of_a_run run(
        {.stages = 2, .frames = frames, .finish_threads = 4, .at_finish = [&](carousel::frame& f) {
             const u64 n = f.frame_number();
             const auto is_finished = [&](u64 other) {
                 const std::lock_guard lock(mutex);
                 return finished.contains(other);
             };
             // The earlier of two is finished after the later one.
             if (n % 2 == 1 && n + 1 < frames && !wait_for([&] { return is_finished(n + 1); }))
                 alone.fetch_add(1);
             std::atomic<u64> sum{0};
             f.in_parts(5, [&](u32 k) { sum.fetch_add(k); });
             if (sum.load() != 10) alone.fetch_add(1);
             const std::lock_guard lock(mutex);
             finished.insert(n);
         }});
    const shm::control_block& c = run.control();
    set_crash_hook([&](crash_point at) {
        if (at != crash_point::input_done) return;  // passed only by the sink's completion thread, committed
        const shm::seat_block& seat = c.seat[1];
        for (u32 j = seat.first_job; j < seat.first_job + seat.jobs; ++j) {
            if (ring::job_word::of(ring::load(c.job[j])).state != ring::job_state::committed) continue;
            const u64 frame_number = c.job_info[j].ring_sequence.load();
            if (frame_number != next.fetch_add(1)) out_of_order.fetch_add(1);
            const std::lock_guard lock(mutex);
            if (!finished.contains(frame_number)) unfinished.fetch_add(1);
        }
    });
    run.run();
    set_crash_hook({});
    CHECK(alone.load() == 0);
    CHECK(next.load() == frames);
    CHECK(out_of_order.load() == 0);
    CHECK(unfinished.load() == 0);
    CHECK(run.sink().frames.load() == frames);
    CHECK(run.sink().wrong.load() == 0);
    CHECK(c.entry[1].finishing_since_ns.load() == 0);
}
