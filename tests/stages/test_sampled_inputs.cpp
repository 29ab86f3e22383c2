// Sampled inputs of runners, as threads of one process: which frame a stage's code sees, and which it never
// sees.
#include <algorithm>
#include <array>
#include <map>

#include "core/errors.hpp"
#include "ring/latest.hpp"
#include "tests/stages/in_process.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"

using namespace carousel;
using namespace carousel::test;

namespace {

/// The values of a sampled input that a stage has read, in its process() and in its enqueued work.
struct sight {
    std::string name;
    u32 hops = 0;  ///< position of the ring's stage: value_of()
    u64 frames = 0, empty = 0, backward = 0, last = 0;
    bool any = false;
    std::atomic<u64> wrong{0};
    std::map<u64, u64> used = {};  ///< by the stage's own frame

    void check_sampled(carousel::frame& f) {
        ++frames;
        const sampled_frame sampled = f.sampled(name);
        used[f.frame_number()] = sampled ? sampled.frame_number() : shm::no_sampled_frame;
        if (!sampled) {
            ++empty;
            return;
        }
        if (any && sampled.frame_number() < last) ++backward;
        any = true;
        last = sampled.frame_number();
        const u64* at = sampled.plane<const u64>("value").data();
        f.queue().submit([this, at, expected = value_of(last, hops)](device::cpu::pool&) {
            if (*at != expected) wrong.fetch_add(1);
        });
    }
};

threads_of_a_run::options with_sampled_inputs(std::vector<std::pair<u32, u32>> sampled_links, u64 frames) {
    threads_of_a_run::options o;
    o.stages = 4;
    o.frames = frames;
    o.work_us = 50;
    o.sampled_links = std::move(sampled_links);
    return o;
}

void check_seen(const sight& s, u64 frames) {
    CHECK(s.frames == frames);
    CHECK(s.wrong == 0);
    CHECK(s.backward == 0);
    CHECK(s.empty < frames);
    CHECK(s.last > 0);
}

}  // namespace

TEST_CASE("stages sample newest frames of rings upstream and downstream, with the header's number") {
    constexpr u64 frames = 400;
    threads_of_a_run run(with_sampled_inputs({{2, 0}, {0, 1}, {2, 2 - 1}}, frames));
    sight ahead{.name = "stage0", .hops = 0}, back{.name = "stage1", .hops = 1},
        own{.name = "stage1", .hops = 1};
    run.stage(2).at_frame = [&](carousel::frame& f) {
        ahead.check_sampled(f);
        own.check_sampled(f);
    };
    run.stage(0).at_frame = [&](carousel::frame& f) { back.check_sampled(f); };
    std::map<u64, std::array<u64, 2>> recorded;
    run.sink().at_frame = [&](carousel::frame& f) {
        const auto in = f.input_sampled();
        REQUIRE(in.size() == 2);
        recorded[f.frame_number()] = {in[0], in[1]};
        CHECK(f.input_sampled().size() == 2);
    };
    run.run();
    CHECK(run.sink().frames == frames);
    CHECK(run.sink().wrong == 0);
    check_seen(ahead, frames);
    check_seen(back, frames);
    check_seen(own, frames);
    REQUIRE(recorded.size() == frames);
    for (const auto& [frame, sampled] : recorded) {
        CHECK(sampled[0] == ahead.used[frame]);
        CHECK(sampled[1] == own.used[frame]);
    }
    for (u32 k = 0; k < run.control().links; ++k)  // each reader slot is free again
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
            CHECK(ring::group_word::of(run.control().link[k].group_state[g].load()).state ==
                  ring::group_state::absent);
}

TEST_CASE("a copy under a revoked lease is discarded, and the copy before it stays") {
#ifdef __SANITIZE_THREAD__
    CAROUSEL_SKIP(
        "what is read under a revoked lease races with the refill by design: release() tells, it is thrown "
        "away");
#endif
    constexpr u64 frames = 300, last_kept = 50;
    threads_of_a_run run(with_sampled_inputs({{2, 0}}, frames));
    u64 revoked = 0;
    run.counts(2).at_copy = [&] {
        u64 newest = 0;  // the leased frame
        const shm::link_block& l = run.control().link[0];
        for (u32 k = 0; k < l.slots; ++k)
            for (u32 g = shm::max_blocking; g < shm::max_groups; ++g)
                if (ring::lease_word::of(l.group[k][g].load()).state == ring::lease_state::leased)
                    newest = run.control().frames[0].header[k].ring_sequence.load(std::memory_order_relaxed);
        if (newest > last_kept && ring::revoke_stale_leases(run.control(), 0, ~u64{0})) ++revoked;
    };
    sight s{.name = "stage0"};
    run.stage(2).at_frame = [&](carousel::frame& f) { s.check_sampled(f); };
    run.run();
    CHECK(run.sink().frames == frames);
    CHECK(revoked > 0);
    CHECK(s.wrong == 0);
    CHECK(s.backward == 0);
    CHECK(s.any);
    CHECK(s.last <= last_kept);
}

TEST_CASE("a sampled input without a place gives no frame, and an unknown one is an error") {
    constexpr u64 frames = 100;
    threads_of_a_run run(with_sampled_inputs({{2, 0}}, frames));
    std::vector<std::unique_ptr<ring::latest_reader>> others;
    for (u32 k = 0; k < shm::max_latest; ++k)
        others.push_back(std::make_unique<ring::latest_reader>(run.control(), 0, shm::max_incarnations));
    u64 empty = 0;
    std::string message;
    run.stage(2).at_frame = [&](carousel::frame& f) {
        empty += f.sampled("stage0") ? 0 : 1;
        try {
            (void)f.sampled("stage7");
        } catch (const config_error& e) {
            message = e.what();
        }
        CHECK_THROWS_AS(f.sampled(1), config_error);
        CHECK_THROWS_AS(f.sampled().frame_number(), config_error);
    };
    run.run();
    CHECK(run.sink().frames == frames);
    CHECK(empty == frames);
    CHECK_THAT(
        message,
        contains("requests the sampled input \"stage7\"; its pipeline file names stage0; did you mean"));
}

TEST_CASE("a process that samples other rings has the pages that it needs open") {
#ifdef __SANITIZE_THREAD__
    CAROUSEL_SKIP("ThreadSanitizer does not follow threads that are made behind a fork");
#endif
    for (const shm::block_guard how : {shm::block_guard::pages, shm::block_guard::emulated}) {
        CAPTURE(static_cast<int>(how));
        threads_of_a_run::options o = with_sampled_inputs({{2, 0}, {0, 2}}, 200);
        o.guard = how;
        threads_of_a_run run(o);
        CHECK(run.run_as_processes());
    }
}
