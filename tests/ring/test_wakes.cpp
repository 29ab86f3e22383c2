// A process that waits for a word is woken after the word has changed: a bell that is rung first wakes a
// process that finds nothing and sleeps on, up to shm::max_sleep_ns. The bell is rung through a wrapper (the
// linker's --wrap), which checks the words at that moment and delays the ringer's next step for as long as a
// sleeper needs for its check.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "core/clock.hpp"
#include "shm/doorbell.hpp"
#include "tests/ring/seated.hpp"

using namespace carousel;
using namespace carousel::ring;
using namespace carousel::test;

namespace {
thread_local std::function<void(const shm::doorbell_word&)> at_ring;
}  // namespace

extern "C" void real_ring(shm::doorbell_word& bell) noexcept
    asm("__real__ZN8carousel3shm4ringERNS0_13doorbell_wordE");
extern "C" void wrapped_ring(shm::doorbell_word& bell) noexcept
    asm("__wrap__ZN8carousel3shm4ringERNS0_13doorbell_wordE");
extern "C" void wrapped_ring(shm::doorbell_word& bell) noexcept {
    real_ring(bell);
    if (at_ring) at_ring(bell);
}

namespace {

/// Calls `check` whenever this thread rings a bell, until the end of its scope.
struct while_ringing {
    explicit while_ringing(std::function<void(const shm::doorbell_word&)> check) {
        at_ring = std::move(check);
    }
    ~while_ringing() { at_ring = {}; }
    while_ringing(const while_ringing&) = delete;
    while_ringing& operator=(const while_ringing&) = delete;
};

}  // namespace

TEST_CASE("each bell of the ring is rung after the word that its sleeper waits for has changed") {
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    job j;
    REQUIRE(source.w->begin(j, 0) == outcome::ok);
    u32 rings = 0;
    {
        const while_ringing check([&](const shm::doorbell_word& bell) {
            rings += &bell == &b.c->stage[1].doorbell ? 1 : 0;
            CHECK(b.job(j.index).state == job_state::submitted);
        });
        REQUIRE(source.w->submit(j));
    }
    CHECK(rings == 1);
    REQUIRE(source.w->commit(j));
    const u32 slot = j.output[0].index;
    bool ready_at_last = false;
    {
        const while_ringing check([&](const shm::doorbell_word& bell) {
            if (&bell == &b.c->stage[1].doorbell) ready_at_last = b.slot(0, slot).state == slot_state::ready;
        });
        REQUIRE(source.w->complete(j));
    }
    CHECK(ready_at_last);
    bool free_at_last = false;
    {
        const while_ringing check([&](const shm::doorbell_word& bell) {
            if (&bell == &b.c->stage[0].doorbell) free_at_last = b.slot(0, slot).state == slot_state::free;
        });
        CHECK(pass(*sink.w) == 0);
        (void)sink.w->input(0).sweep();
    }
    CHECK(free_at_last);
}

TEST_CASE("a reader that sleeps is woken within 10 ms of the frame that it waits for") {
    constexpr u32 frames = 9;
    constexpr u64 bound_ns = 10 * ns_per_ms;
    bench b(chain());
    const seated source = b.sit(0), sink = b.sit(1);
    shm::doorbell_word& bell = b.c->stage[1].doorbell;
    std::vector<u64> latency;
    std::atomic<u32> sleeps{0};
    std::atomic<u64> ready_ns{0};
    std::thread reader([&] {
        job j;
        for (u32 n = 0; n < frames; ++n) {
            for (;;) {
                const u32 seen = shm::ticket(bell);
                if (sink.w->begin(j, 0) == outcome::ok) break;
                sleeps.store(n + 1);
                (void)shm::wait(bell, seen, shm::max_sleep_ns);
            }
            const u64 now = now_ns(), ready = ready_ns.load();
            latency.push_back(now > ready ? now - ready : 0);
            (void)(sink.w->submit(j) && sink.w->commit(j) && sink.w->complete(j));
        }
    });
    for (u32 n = 0; n < frames; ++n) {
        for (const u64 until = now_ns() + 20 * ns_per_s; sleeps.load() != n + 1 && now_ns() < until;)
            ::usleep(100);
        ::usleep(2'000);  // the waiting process has checked and sleeps
        job j;
        if (source.w->begin(j, 0) != outcome::ok || !source.w->submit(j) || !source.w->commit(j)) break;
        ::usleep(2'000);
        ready_ns.store(now_ns());
        // As long as a sleeper that is woken too early may need.
        const while_ringing blocker([&](const shm::doorbell_word& rung) {
            if (&rung == &bell) ::usleep(bound_ns / ns_per_us);
        });
        if (!source.w->complete(j)) break;
    }
    reader.join();
    REQUIRE(latency.size() == frames);
    std::nth_element(latency.begin(), latency.begin() + frames / 2, latency.end());
    CHECK(latency[frames / 2] < bound_ns);  // the median: a busy machine may delay some
}
