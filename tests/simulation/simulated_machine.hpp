#pragma once
// A machine without a clock and without processes. The supervisor's own code runs on it, unchanged: the calls
// of the C library by which the supervisor reads the clock, waits, starts, signals and reaps processes are
// replaced at link time (`--wrap`, listed in CMakeLists.txt), and only while a machine exists. Descriptors,
// sockets and files are the kernel's; with one thread and one seed, their order is the same in each run.
//
// A supervisor runs as a fiber. When it waits, the machine carries out the next event: a step of a simulated
// process, a tick, a fault. Time advances only from one event to the next (and by a few nanoseconds at each
// reading of the clock, so that a loop that waits for a deadline ends).

#include <sys/types.h>
#include <ucontext.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::test {

class machine;

/// What a simulated process does. Its steps are events of the machine.
class program {
public:
    virtual ~program() = default;
    /// One step; returns the time until the next step.
    virtual u64 step() = 0;
    /// Called when the process can execute no more code; closes what the kernel would close.
    virtual void ends() noexcept = 0;
    /// Called when the kernel reports the end of the process: its device can no longer write.
    virtual void is_gone() noexcept {}
};

struct simulated_process {
    i32 pid = 0;
    u64 start_time = 0;
    int pidfd = -1, death = -1;  ///< a pipe: its read end becomes readable when the process has ended
    bool stopped = false;        ///< SIGSTOP
    bool exiting = false;        ///< executes no code any more
    bool ended = false;          ///< a zombie
    bool reaped = false;
    bool elsewhere = false;  ///< not a child of the supervisor
    bool orphan = false;     ///< a child of a supervisor that has died
    int exit_code = 0, signal = 0;
    u64 steps = 0;  ///< number of the step that is due; an older step is ignored
    std::unique_ptr<program> runs;
};

/// A supervisor, as a fiber. Abandoning it without running its destructors is its death by SIGKILL.
struct fiber {
    ucontext_t context{};
    std::unique_ptr<char[]> stack;
    std::function<void()> body;
    bool over = false;    ///< its body has returned
    bool dead = false;    ///< killed
    bool touched = true;  ///< its descriptors may have become ready
    u32 dies_in = 0;      ///< dies at the crash point that it reaches as the n-th from now on; 0: at none
    std::string dies_at;  ///< dies at the crash point of that name; "": at none
    std::set<int> descriptors;  ///< that it has opened; only if the machine traces descriptors
    std::string error;
    u64 stopped_until_ns = 0;        ///< SIGSTOP
    u64 wakes_at_ns = 0;             ///< deadline of its present wait
    std::function<bool()> is_ready;  ///< true if the present wait is over
    int timer = -1;
};

/// The descriptors of this process.
std::set<int> open_descriptors();

class machine {
public:
    explicit machine(u64 seed);
    ~machine();
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;
    /// The machine that replaces the C library's calls; null: none.
    static machine* current() noexcept;

    // ---- time
    [[nodiscard]] u64 now() const noexcept { return now_; }
    u64 read_clock() noexcept { return now_ += 20; }
    void at(u64 when, std::function<void()> event);
    void after(u64 ns, std::function<void()> event) { at(now_ + ns, std::move(event)); }
    [[nodiscard]] u64 below(u64 n) { return dice_() % n; }
    /// Starts a supervisor. `f` is not moved as long as this object exists.
    void start(fiber& f);
    /// Runs until `is_over`, or until `limit_ns`. Returns true if it is over.
    bool run(const std::function<bool()>& is_over, u64 limit_ns);
    /// A descriptor may have become ready: the waiting supervisors check their descriptors.
    void touch() noexcept {
        for (fiber* f : fibers_) f->touched = true;
    }

    // ---- the death of a supervisor
    /// Traces the descriptors of the supervisors, which kill() closes.
    bool supervisors_may_die = false;
    /// Called after a supervisor has died, with its last crash point ("": none).
    std::function<void(fiber&, const std::string&)> died;
    /// As SIGKILL: its descriptors are closed, and its children have no parent any more.
    void kill(fiber& f) { bury(f, ""); }
    /// To be called at each crash point.
    void reach(const std::string& point);

    // ---- processes
    /// Makes the program of a process from its environment.
    std::function<std::unique_ptr<program>(simulated_process&, const std::vector<std::string>&)> load;
    bool no_process_left = false;  ///< posix_spawn() fails with EAGAIN
    int spawn(pid_t& pid, char* const environment[]);
    /// Starts a program that is not a child of the supervisor; its own parent reaps it.
    simulated_process& spawn_elsewhere(const std::vector<std::string>& environment);
    [[nodiscard]] simulated_process* find(i32 pid) noexcept;
    [[nodiscard]] simulated_process* by_pidfd(int fd) noexcept;
    int signal(simulated_process& p, int signal);
    /// The same for a signal from the supervisor. A process executes code for a moment after it was killed.
    int send_signal(simulated_process& p, int signal);
    void exit(simulated_process& p, int exit_code, int signal);
    [[nodiscard]] const std::map<i32, std::unique_ptr<simulated_process>>& processes() const noexcept {
        return processes_;
    }
    /// Shortest and longest time from the end of a process's last instruction to its end (a driver's
    /// tear-down).
    u64 teardown_ns[2] = {1'000'000, 100'000'000};
    [[nodiscard]] std::string stat_of(const simulated_process& p) const;

    // ---- files
    bool disk_full = false;  ///< writes at an offset of a file below `disk` fail
    dev_t disk = 0;

    // ---- waiting, called on the supervisor's fiber
    void wait(u64 until_ns, std::function<bool()> ready);
    [[nodiscard]] bool on_fiber() const noexcept { return running_ != nullptr; }
    int make_timer();
    /// Runs `fn` with getpid() returning `pid`.
    template <typename F>
    auto as(i32 pid, F&& fn) {
        struct back {
            i32& at;
            i32 before;
            ~back() { at = before; }
        } restore{pid_, pid_};
        pid_ = pid;
        return fn();
    }
    [[nodiscard]] i32 pid() const noexcept { return pid_; }

    // ---- the trace
    void note(std::string text);
    [[nodiscard]] const std::deque<std::string>& trace() const noexcept { return trace_; }
    [[nodiscard]] u64 trace_hash() const noexcept { return trace_hash_; }

private:
    void schedule(simulated_process& p, u64 after_ns);
    simulated_process& make_process(const std::vector<std::string>& environment, bool elsewhere);
    void resume(fiber& f);
    void bury(fiber& f, const std::string& point);
    void tick();
    static void enter(unsigned high, unsigned low);

    u64 now_ = 1'000'000'000'000, sequence_ = 0;
    std::map<std::pair<u64, u64>, std::function<void()>> events_;
    std::mt19937_64 dice_;
    std::map<i32, std::unique_ptr<simulated_process>> processes_;
    std::map<ino_t, i32> pid_of_pidfd_;
    i32 next_pid_ = 5'000'000, pid_ = 0;  ///< above every pid of the real machine
    std::vector<fiber*> fibers_;          ///< of supervisors that are alive
    fiber* running_ = nullptr;
    std::set<int> others_;  ///< descriptors that were open when the running supervisor was resumed
    bool ticks_ = false;
    std::string died_at_;
    ucontext_t scheduler_{};
    std::deque<std::string> trace_;
    u64 trace_hash_ = 0xcbf2'9ce4'8422'2325ULL;
};

}  // namespace carousel::test
