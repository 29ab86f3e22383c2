// Measures the cost of isolation on a CPU: two workers alternate on one processor, as threads of one process
// and as two processes. Also measures the time to start a thread and a process, and shows what effect the
// fault of one worker has on the other.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::now_us;
using lesson::start;

constexpr unsigned turns = 5000, starts = 50, page = 4096, pages = 512;
constexpr rlimit no_core{0, 0};

struct shared {
    std::atomic<unsigned> turn, beats, stop;
    double us;
};
shared* all;

/// Returns the first processor that this process may use.
int first_processor() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    int cpu = 0;
    while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &set)) ++cpu;
    return cpu;
}
void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}
void futex(std::atomic<unsigned>& word, int what, unsigned value) {
    const timespec second{1, 0};
    syscall(SYS_futex, &word, what, value, what == FUTEX_WAIT ? &second : nullptr, nullptr, 0);
}

/// Takes `turns` turns as worker `number`. `touched`: the worker's own pages, or null; in each turn the
/// worker reads one byte of each page. Returns the median time in us from one turn of this worker to its next
/// turn; in this time, each of the two workers takes one turn.
double take_turns(unsigned number, const volatile char* touched) {
    std::vector<double> each;
    double last = now_us();
    for (unsigned k = 0; k < turns; ++k) {
        for (unsigned now; (now = all->turn.load()) % 2 != number;) futex(all->turn, FUTEX_WAIT, now);
        if (touched != nullptr)
            for (unsigned p = 0; p < pages; ++p) (void)touched[size_t{p} * page];
        const double now = now_us();
        each.push_back(now - last), last = now;
        all->turn.fetch_add(1), futex(all->turn, FUTEX_WAKE, 1);
    }
    std::nth_element(each.begin(), each.begin() + turns / 2, each.end());
    return each[turns / 2];
}
volatile char* own_pages() {
    void* at = mmap(nullptr, size_t{pages} * page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<volatile char*>(at);
}
/// Measures the time in us to switch from one worker to the other, in a child process that is pinned to one
/// processor.
double switches(const char* name, bool processes, bool touches) {
    all->turn = 0, all->us = 0;
    (void)end_of(start([&] {
        pin_to(first_processor());
        pid_t other = 0;
        std::thread thread;
        const auto second = [&] { (void)take_turns(1, touches ? own_pages() : nullptr); };
        if (processes)
            other = start([&] { return second(), 0; });
        else
            thread = std::thread(second);
        all->us = take_turns(0, touches ? own_pages() : nullptr) / 2;
        if (processes) (void)end_of(other);
        if (thread.joinable()) thread.join();
        return 0;
    }));
    std::printf("figure %s %.2f\n", name, all->us);
    return all->us;
}

void time_starts() {
    std::vector<double> process, thread;
    for (unsigned k = 0; k < starts; ++k) {
        double begin = now_us();
        (void)end_of(start([] { return 0; }));
        process.push_back(now_us() - begin);
        begin = now_us();
        std::thread([] {}).join();
        thread.push_back(now_us() - begin);
    }
    std::sort(process.begin(), process.end()), std::sort(thread.begin(), thread.end());
    std::printf("figure process.start_us %.1f\nfigure thread.start_us %.1f\n", process[starts / 2],
                thread[starts / 2]);
}

/// The loop of a neighbour: it increments a counter every 100 us, and returns the longest time in us between
/// two increments.
double beat() {
    double longest = 0, last = now_us();
    while (all->stop == 0) {
        ++all->beats;
        const double now = now_us();
        longest = std::max(longest, now - last), last = now;
        usleep(100);
    }
    return longest;
}
/// One of two workers writes to an inaccessible page, which kills its process. Measures whether the other
/// worker continues.
void fault(const char* name, bool processes) {
    all->beats = all->stop = 0;
    void* const nowhere = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto faulty = [nowhere] {
        usleep(50'000);
        *static_cast<volatile int*>(nowhere) = 1;
    };
    const pid_t team = start([&] {
        std::thread thread;
        if (processes)
            (void)start([&] { return faulty(), 0; });
        else
            thread = std::thread(faulty);
        const double longest = beat();
        std::printf("figure %s.stall_us %.0f\n", name, longest);
        std::fflush(stdout);
        if (thread.joinable()) thread.join();
        return 0;
    });
    usleep(150'000);
    const unsigned then = all->beats;
    usleep(100'000);
    std::printf("figure %s.survives %d\n", name, all->beats > then);
    all->stop = 1;
    (void)end_of(team);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-isolation")) return 2;
    all = lesson::shared_memory<shared>();
    setrlimit(RLIMIT_CORE, &no_core);
    const double threads = switches("threads.switch_us", false, false);
    std::printf("figure processes.ratio %.3f\n", switches("processes.switch_us", true, false) / threads);
    (void)switches("threads.touching_us", false, true);
    (void)switches("processes.touching_us", true, true);
    time_starts();
    fault("threads", false);
    fault("processes", true);
    return 0;
}
