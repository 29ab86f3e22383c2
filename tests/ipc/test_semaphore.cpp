#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "tests/support/catch.hpp"
#include "zeroed.hpp"

using namespace carousel;
using namespace carousel::ipc;
using carousel::test::zeroed;

namespace {
struct made {
    zeroed<semaphore_block> b;
    explicit made(u32 permits, u32 line = 8) : b(semaphore_block::bytes(permits, line)) {
        b->make(permits, line);
    }
    semaphore of(u32 epoch) { return {*b, epoch}; }
    // Like a client that is in the line and does not poll.
    void rests(u64 ticket, u32 epoch) {
        const u64 lap = ticket / b->line;
        b->place()[ticket % b->line].store(line_word{lap, epoch, line_state::waiting}.pack());
    }
};

// Time advances only if a test sets it.
struct controlled_time {
    static inline u64 now = 0;
    controlled_time() {
        now = 1000 * ns_per_s;
        set_hooks({.now_ns = [] { return now; }});
    }
    ~controlled_time() { set_hooks({}); }
};
}  // namespace

TEST_CASE("all permits can be held at once, and a released one is given to the next waiter") {
    made m(2);
    const auto a = m.of(1).try_acquire(), b = m.of(2).try_acquire();
    REQUIRE(a);
    REQUIRE(b);
    CHECK_FALSE(m.of(3).try_acquire());
    CHECK(m.of(3).holders() == std::vector<u32>{1, 2});
    CHECK(m.of(1).release(*a));
    CHECK_FALSE(m.of(1).release(*a));
    CHECK_FALSE(m.of(3).release(*b));  // another's
    CHECK(m.of(3).try_acquire());
}

TEST_CASE("a waiter gets a permit that is released during its wait, long before its timeout") {
    made m(1);
    const auto held = m.of(1).try_acquire();
    std::thread other([&] {
        while (m.of(3).waiting() == 0) std::this_thread::yield();
        (void)m.of(1).release(*held);
    });
    CHECK(m.of(2).acquire(60'000'000'000));
    other.join();
    CHECK(m.of(3).holders() == std::vector<u32>{2});
}

TEST_CASE("a wait ends at its timeout and leaves no ticket") {
    made m(1);
    const auto held = m.of(1).try_acquire();
    CHECK_FALSE(m.of(2).acquire(20'000'000));
    CHECK(m.of(2).waiting() == 0);
    CHECK(m.of(1).release(*held));
}

TEST_CASE("a full line admits no client, and leaving clients make room in any order") {
    made m(1, 2);
    const auto held = m.of(1).try_acquire();
    m.b->place()[1].store(line_word{0, 7, line_state::waiting}.pack());  // two that rest in the line
    m.b->place()[0].store(line_word{1, 8, line_state::waiting}.pack());
    CHECK(m.of(1).release(*held));
    CHECK_FALSE(m.of(2).acquire(5'000'000));
    CHECK(m.of(2).waiting() == 2);
    repair(*m.b, 8);
    repair(*m.b, 7);
    CHECK(m.of(2).try_acquire());
}

TEST_CASE("a repair returns only the objects of the dead client, even if it is repeated") {
    made m(3);
    REQUIRE(m.of(1).try_acquire());
    REQUIRE(m.of(2).try_acquire());
    REQUIRE(m.of(1).try_acquire());
    for (int twice = 0; twice < 2; ++twice) {
        repair(*m.b, 1);
        CHECK(m.of(9).free_permits() == 2);
        CHECK(m.of(9).holders() == std::vector<u32>{2});
    }
}

TEST_CASE("a repair leaves the permits and tickets of live clients") {
    made m(2);
    REQUIRE(m.of(1).try_acquire());
    m.rests(1, 3);
    m.rests(2, 1);
    repair(*m.b, 1);
    CHECK(m.of(9).waiting() == 1);
    CHECK(line_word::of(load(m.b->place()[1])).epoch == 3);
    repair(*m.b, 3);
    CHECK(m.of(9).waiting() == 0);
}

TEST_CASE("releasing a released permit again has no effect, even if the client holds it again") {
    made m(1);
    const auto first = m.of(1).try_acquire();
    REQUIRE(first);
    CHECK(m.of(1).release(*first));
    REQUIRE(m.of(1).try_acquire());
    CHECK_FALSE(m.of(1).release(*first));
    CHECK(m.of(1).free_permits() == 0);
}

TEST_CASE("returning a permit, leaving the line and repairing wake the waiters") {
    made m(1);
    const auto held = m.of(1).try_acquire();
    u32 seen = shm::ticket(m.b->bell);
    const auto rung = [&] { return std::exchange(seen, shm::ticket(m.b->bell)) != shm::ticket(m.b->bell); };
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(rung());  // it was in the line
    CHECK(m.of(1).release(*held));
    CHECK(rung());
    repair(*m.b, 9);
    CHECK(rung());
}

TEST_CASE("threads that share one permit never hold it at the same time") {
    made m(1, 16);
    int inside = 0, most = 0, turns = 0;
    std::vector<std::thread> all;
    for (u32 t = 1; t <= 4; ++t)
        all.emplace_back([&, t] {
            for (int k = 0; k < 200; ++k) {
                const auto p = m.of(t).acquire(60'000'000'000);
                if (!p) return;
                most = std::max(most, ++inside);
                ++turns;
                --inside;
                (void)m.of(t).release(*p);
            }
        });
    for (std::thread& t : all) t.join();
    CHECK(most == 1);
    CHECK(turns == 800);
}

TEST_CASE("a stopped client at the head of the line is skipped after its patience, not before") {
    made m(1);
    controlled_time t;
    m.rests(0, 7);
    CHECK_FALSE(m.of(2).try_acquire());
    t.now += line_patience_ns - ns_per_ms;
    CHECK_FALSE(m.of(3).try_acquire());
    CHECK(m.of(3).waiting() == 1);
    t.now += ns_per_ms;
    CHECK_FALSE(m.of(2).try_acquire());  // it has looked before the other was passed by
    CHECK(m.of(2).waiting() == 0);
    CHECK(m.of(2).try_acquire());
}

TEST_CASE("no client is skipped for a time without a free permit") {
    made m(1);
    controlled_time t;
    m.rests(0, 7);
    CHECK_FALSE(m.of(2).try_acquire());
    m.b->permit()[0].store(permit_word{0, 9, permit_state::held}.pack());
    t.now += 10 * line_patience_ns;
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(m.of(9).release({0, 0}));
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(m.of(2).waiting() == 1);
}

TEST_CASE("only the first waiter is skipped, and the next one has its own patience") {
    made m(1);
    controlled_time t;
    m.rests(0, 7);
    m.rests(1, 8);
    CHECK_FALSE(m.of(2).try_acquire());
    t.now += line_patience_ns;
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(line_word::of(load(m.b->place()[0])).state == line_state::empty);
    CHECK(line_word::of(load(m.b->place()[1])).epoch == 8);
    CHECK_FALSE(m.of(2).try_acquire());
    t.now += line_patience_ns - ns_per_ms;
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(m.of(2).waiting() == 1);
}

TEST_CASE("a full queue of stopped clients admits others one after the other") {
    made m(1, 2);
    controlled_time t;
    m.rests(1, 7);
    m.rests(2, 8);
    CHECK_FALSE(m.of(2).try_acquire());
    t.now += line_patience_ns;
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(m.of(2).waiting() == 1);
    CHECK_FALSE(m.of(2).try_acquire());
    t.now += line_patience_ns;
    CHECK_FALSE(m.of(2).try_acquire());
    CHECK(m.of(2).try_acquire());
}

TEST_CASE("a skipped client takes a new ticket after the others") {
    static made* m = nullptr;
    static u32 sleeps = 0;
    made mine(1);
    m = &mine, sleeps = 0;
    REQUIRE(m->of(1).try_acquire());  // ticket 0
    set_hooks({.sleep = [](shm::doorbell_word&, u32, u64) {
        const line_word waits{0, 2, line_state::waiting};
        if (++sleeps == 1) {
            CHECK(line_word::of(load(m->b->place()[1])) == waits);
            m->b->place()[1].store(line_word{1, 0, line_state::empty}.pack());
            m->rests(2, 3);
        } else {
            CHECK(line_word::of(load(m->b->place()[3])) == waits);
            repair(*m->b, 3);
            repair(*m->b, 1);
        }
        return true;
    }});
    const auto got = m->of(2).acquire(60 * ns_per_s);
    set_hooks({});
    CHECK(got);
    CHECK(sleeps == 2);
    CHECK(m->of(2).waiting() == 0);
}

TEST_CASE("a process stopped in the line delays later ones for its patience, not for its stop") {
    const u64 bytes = semaphore_block::bytes(1, 8);
    void* shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    auto& b = *static_cast<semaphore_block*>(shared);
    b.make(1, 8);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        set_hooks({.at = [](step s) {
            if (s == step::line_joined) (void)::raise(SIGSTOP);
        }});
        semaphore s(b, 7);
        const auto got = s.acquire(60 * ns_per_s);
        ::_exit(got && s.release(*got) ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(status));
    semaphore s(b, 2);
    const u64 began = now_ns();
    const auto got = s.acquire(60 * ns_per_s);
    CHECK(got);
    CHECK(now_ns() - began >= line_patience_ns / 2);
    if (got) CHECK(s.release(*got));
    // It wakes, finds that its place was removed and still gets its turn.
    for (;;) {
        (void)::kill(child, SIGCONT);
        REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
        if (!WIFSTOPPED(status)) break;
    }
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    CHECK(s.free_permits() == 1);
    CHECK(s.waiting() == 0);
    (void)::munmap(shared, bytes);
}
