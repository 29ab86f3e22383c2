#include "bench/ipc/workers.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "core/clock.hpp"

namespace carousel::bench {
namespace {

constexpr u32 most_workers = 64;
constexpr u64 patience_ns = 20'000'000'000;

struct round_block {
    std::atomic<u32> ready, go, stop, failed;
    std::atomic<u64> operations;
};

/// Returns false if the setup or the loop throws.
bool work(round_block& b, u32 number, const worker_setup& setup) {
    try {
        const worker_loop loop = setup(number);
        b.ready.fetch_add(1);
        while (b.go.load() == 0 && b.stop.load() == 0) std::this_thread::yield();
        b.operations.fetch_add(loop(b.stop));
        return true;
    } catch (const std::exception&) {
        b.failed.fetch_add(1);
        return false;
    }
}

/// Returns false if a worker is not ready in time; the caller then stops all workers.
bool wait_for_all(round_block& b, u32 number) {
    const u64 end = now_ns() + patience_ns;
    while (b.ready.load() + b.failed.load() < number)
        if (now_ns() > end)
            return false;
        else
            ::usleep(100);
    return b.failed.load() == 0;
}

/// Waits for a value that is due soon: yields instead of sleeping.
void wait_until(const std::atomic<u32>& word, u32 value, const std::atomic<u32>& quit) {
    while (word.load(std::memory_order_acquire) < value && quit.load() == 0) ::sched_yield();
}

}  // namespace

pid_t start_child(const std::function<int()>& body, u32 time_limit_s) {
    const pid_t parent = ::getpid(), pid = ::fork();
    if (pid < 0) throw shm_error("starting a process for the bench: " + errno_text(errno));
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // the parent has died before the prctl
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(time_limit_s);
    int code = 1;
    try {
        code = body();
    } catch (const std::exception&) {
        // the parent sees the exit code, and the row fails
    }
    ::_exit(code);
}

bool end_child(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

round_result run_round(bool processes, u32 number, u32 ms, const worker_setup& setup) {
    const shared_with_children<round_block> b;
    std::vector<pid_t> children;
    std::vector<std::thread> threads;
    for (u32 k = 0; k < number && k < most_workers; ++k)
        if (processes)
            children.push_back(start_child([&, k] { return work(*b, k, setup) ? 0 : 1; }));
        else
            threads.emplace_back([&, k] { (void)work(*b, k, setup); });
    round_result r;
    r.well = wait_for_all(*b, number);
    const u64 begin = now_ns();
    b->go.store(1);
    if (r.well) ::usleep(ms * 1000);
    b->stop.store(1);
    const u64 end = now_ns();
    for (const pid_t pid : children) r.well = end_child(pid) && r.well;
    for (std::thread& t : threads) t.join();
    r.well = r.well && b->failed.load() == 0;
    r.operations = b->operations.load(), r.seconds = static_cast<f64>(end - begin) / 1e9;
    return r;
}

struct crew::board {
    std::atomic<u32> ready, found_why, failed, quit;
    /// Round number << 32 | number of active workers. Both are in one word, because inactive workers may read
    /// them at any time and must not see the numbers of two different rounds.
    std::atomic<u64> call;
    std::atomic<u32> go, stop_now, settle;  // round numbers; stop_now: 0 or 1
    // number of workers that have begun, finished or settled a round, summed over all rounds
    std::atomic<u32> begun, done, settled;
    std::atomic<u32> what, count;
    std::atomic<u64> operations, timed_ns, in, out;
    char why[240];
    void fail(const std::string& text) {
        if (found_why.exchange(1) != 0) return;  // only the first reason is kept
        text.copy(why, sizeof why - 1);
        failed = 1;
    }
};

crew::crew(u32 number, u32 time_limit_s, const std::function<std::unique_ptr<crew_worker>(u32 worker)>& make,
           const crew_patience& patience)
    : patience_(patience), board_(std::make_unique<shared_with_children<board>>()) {
    for (u32 k = 0; k < number; ++k)
        pids_.push_back(start_child(
            [&, k] {
                board& b = **board_;
                try {
                    const std::unique_ptr<crew_worker> w = make(k);
                    ++b.ready;
                    serve(b, k, *w);
                    return 0;
                } catch (const std::exception& e) {
                    b.fail(e.what());
                    return 1;
                }
            },
            time_limit_s));
}

crew::~crew() {
    (*board_)->quit = 1, (*board_)->stop_now = 1;
    u64 ms = 0;
    for (const pid_t pid : pids_) {
        pid_t ended = 0;
        for (; ms < patience_.end_ns / ns_per_ms && (ended = ::waitpid(pid, nullptr, WNOHANG)) == 0; ++ms)
            ::usleep(1000);
        if (ended != 0) continue;
        ::kill(pid, SIGKILL);
        (void)::waitpid(pid, nullptr, 0);
    }
}

void crew::serve(board& b, u32 number, crew_worker& w) const {
    for (u32 round = 0;;) {
        u64 call = b.call.load();
        for (; call >> 32U == round && b.quit.load() == 0; call = b.call.load()) ::usleep(1000);
        if (b.quit.load() != 0) return;
        round = static_cast<u32>(call >> 32U);
        if (number >= static_cast<u32>(call)) continue;
        const u32 what = b.what.load();
        ++b.begun;
        wait_until(b.go, round, b.quit);
        const crew_work done = w.run(what, b.count.load(), b.stop_now);
        b.operations += done.operations, b.timed_ns += done.timed_ns;
        ++b.done;
        wait_until(b.settle, round, b.quit);
        u64 in = 0, out = 0;
        w.settle(what, in, out);
        b.in += in, b.out += out;
        ++b.settled;
    }
}

bool crew::wait_for(const std::atomic<u32>& word, u32 value, u64 patience_ns, const char* what) {
    board& b = **board_;
    for (const u64 end = now_ns() + patience_ns; word.load() < value; ::usleep(50)) {
        if (b.failed.load() == 0 && now_ns() < end) continue;
        b.fail(fmt::format("not all processes {} within {} ms", what, patience_ns / ns_per_ms));
        return false;
    }
    return true;
}

bool crew::ready() {
    return wait_for((*board_)->ready, static_cast<u32>(pids_.size()), patience_.start_ns, "became ready");
}

std::optional<crew_round> crew::round(u32 what, u32 count, u32 active, u32 ms) {
    board& b = **board_;
    if (b.failed.load() != 0) return std::nullopt;
    b.what = what, b.count = count;
    b.operations = 0, b.timed_ns = 0, b.in = 0, b.out = 0, b.stop_now = 0;
    const u32 number = static_cast<u32>(b.call.load() >> 32U) + 1, begun = b.begun + active,
              done = b.done + active, settled = b.settled + active;
    b.call = u64{number} << 32U | active;
    if (!wait_for(b.begun, begun, patience_.round_ns, "started")) return std::nullopt;
    crew_round r;
    const u64 begin = now_ns();
    b.go = number;
    ::usleep(ms * 1000);
    b.stop_now = 1;
    if (!wait_for(b.done, done, patience_.round_ns, "stopped")) return std::nullopt;
    r.seconds = static_cast<f64>(now_ns() - begin) / 1e9;
    b.settle = number;
    if (!wait_for(b.settled, settled, patience_.round_ns, "became idle")) return std::nullopt;
    r.operations = b.operations, r.timed_ns = b.timed_ns, r.right = b.in == b.out;
    return r;
}

std::string crew::why() const { return (*board_)->why; }

}  // namespace carousel::bench
