#pragma once
// Histories of the real code of the primitives, without threads: each client is a fiber that runs the shipped
// functions on shared words, and at each named step (ipc/step.hpp) a seeded scheduler selects which fiber
// continues and which dies. A death is an exception that only the fiber's end catches: shared memory then
// contains what a SIGKILL leaves. After it the holder's fiber repairs, and can also die during the repair.
// Time is the scheduler's: every step is a microsecond (or as set in the options), and a sleep at a doorbell
// ends when it rings or its timeout is over. A stopped fiber continues after N steps, at the same point.

#include <ucontext.h>

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ipc/step.hpp"

namespace carousel::test {

/// One incarnation of one client.
struct incarnation {
    u32 slot = 0, epoch = 0;
    std::mt19937_64* random = nullptr;
    [[nodiscard]] u64 below(u64 n) const { return (*random)() % n; }
};

struct history_options {
    u64 seed = 1;
    u32 clients = 4;
    u32 kills = 12;        ///< of clients
    u32 holder_kills = 6;  ///< of the holder, during a repair
    u64 steps = 3000;      ///< then no client starts a new operation and no process is killed
    u32 kill_in = 60;      ///< one kill per N steps, while there are kills left
    u32 stops = 0;         ///< of clients, each for stop_steps at most
    u64 stop_steps = 1000;
    u64 step_ns = 1000;
    u64 patience_ns =
        15'000'000'000;  ///< for the observer of real processes, before they are considered to wait forever
    bool repairs_living_clients = false;  ///< control: the repair does not wait for the fence
};

class history {
public:
    explicit history(const history_options& o);
    ~history();
    history(const history&) = delete;
    history& operator=(const history&) = delete;

    std::function<void(incarnation&)> client;      ///< one operation: it is called repeatedly in each
                                                   ///< incarnation
    std::function<void(u32 epoch)> repair;         ///< after the fence of that incarnation
    std::function<void()> rounds;                  ///< what the holder does in addition, repeatedly
    std::function<void(ipc::step)> observe;        ///< at each step of a client, on its fiber
    std::function<void(const incarnation&)> died;  ///< before any repair

    /// Returns false if a process waits forever.
    [[nodiscard]] bool run();
    /// The first rule that was broken; "" for none.
    [[nodiscard]] const std::string& finding() const { return finding_; }
    void find(const std::string& what);

    /// The incarnation whose fiber runs now; null in the holder's.
    [[nodiscard]] const incarnation* now() const;
    [[nodiscard]] bool over() const { return step_ >= options_.steps; }
    void each_step_takes(u64 ns) { options_.step_ns = ns; }
    [[nodiscard]] u64 patience_ns() const { return options_.patience_ns; }
    [[nodiscard]] u64 clock_ns() const { return step_ * options_.step_ns; }
    [[nodiscard]] const std::array<u32, ipc::steps>& kills_at() const { return kills_at_; }
    /// A separate process has died there.
    void count_death(ipc::step s) { ++kills_at_[static_cast<std::size_t>(s)]; }
    [[nodiscard]] std::mt19937_64& random() { return random_; }

private:
    struct fiber;
    struct killed {};
    static void enter(u32 high, u32 low);
    static void at_step(ipc::step s);
    static u64 time_ns();
    static bool sleep(shm::doorbell_word& bell, u32 seen, u64 timeout_ns);
    void body(fiber& f);
    void begin(fiber& f, bool holder);
    void resume(fiber& f);
    void pause(fiber& f);
    void schedule();
    void reap(fiber& f);
    [[nodiscard]] bool runnable(const fiber& f) const;

    history_options options_;
    std::mt19937_64 random_;
    std::vector<std::unique_ptr<fiber>> fibers_;  // clients, then the holder
    std::vector<u32> to_repair_;
    std::string finding_;
    std::array<u32, ipc::steps> kills_at_{};
    u64 step_ = 0;
    u32 next_epoch_ = 1, kills_ = 0, holder_kills_ = 0, stops_ = 0;
    fiber* running_ = nullptr;
    ucontext_t scheduler_{};
    static history* only_;
};

/// Counts of the situations that many histories have reached.
struct campaign_result {
    std::array<u64, ipc::steps> kills_at{};
    u64 histories = 0, failed = 0, first_seed = 0, last_seed = 0, first_failed = 0;
    std::string finding;  ///< of the first that failed
    void add(const history& h, u64 seed, bool ended);
    [[nodiscard]] std::string text() const;
};

}  // namespace carousel::test
