#include "bench/ipc/workers.hpp"

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

}  // namespace carousel::bench
