// A master gives tasks to workers through a work queue of a space, and half of the workers are killed in the
// middle of a task. For comparison, workers take tasks from a naive list with a shared index. Usage:
// carousel-lab-work SPACE (the name given to `carousel hold`)
#include <unistd.h>

#include <atomic>
#include <carousel/ipc.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::now_us;
using lesson::shared_memory;
using lesson::start;
using std::chrono::seconds;
std::string space;

constexpr unsigned tasks = 200, workers = 4;

struct board {
    std::atomic<unsigned> next{0}, done{0};
    std::atomic<unsigned> times[tasks] = {};
    std::atomic<bool> half{false};
};

/// As in the textbooks, all workers increment a shared index. Two workers are killed in the middle of a task.
void naive() {
    auto* b = shared_memory<board>();
    pid_t pids[workers];
    for (unsigned w = 0; w < workers; ++w)
        pids[w] = start([&, w] {
            for (unsigned k; (k = b->next.fetch_add(1)) < tasks;) {
                if (w < workers / 2 && k >= tasks / 4) return kill(getpid(), SIGKILL);
                usleep(200);
                b->times[k].fetch_add(1);
            }
            return 0;
        });
    for (const pid_t pid : pids) (void)end_of(pid);
    unsigned missing = 0;
    for (const auto& t : b->times) missing += t == 0;
    std::printf("figure naive.missing %u\n", missing);
}

void held() {
    auto* b = shared_memory<board>();
    auto queue = carousel::ipc::open(space).work_queue<unsigned>("tasks", 512, 3);
    for (unsigned k = 0; k < tasks; ++k) (void)queue.submit(k, seconds(5));
    const double begin = now_us();
    pid_t pids[workers];
    for (unsigned w = 0; w < workers; ++w)
        pids[w] = start([&, w] {
            auto mine = carousel::ipc::open(space).work_queue<unsigned>("tasks", 512, 3);
            while (b->done.load() < tasks) {
                auto task = mine.try_claim();
                if (!task) {
                    usleep(100);
                    continue;
                }
                if (w < workers / 2 && b->done.load() >= tasks / 4) return kill(getpid(), SIGKILL);
                usleep(200);
                const unsigned k = task->value();
                task->commit();
                b->times[k].fetch_add(1), b->done.fetch_add(1);
            }
            return 0;
        });
    unsigned killed = 0;
    for (const pid_t pid : pids) killed += end_of(pid) < 0;
    unsigned once = 0;
    for (const auto& t : b->times) once += t == 1;
    std::printf(
        "figure held.killed %u\nfigure held.once %u\nfigure held.ms %.1f\nfigure held.dead_letters %u\n",
        killed, once, (now_us() - begin) / 1e3, queue.dead_letters());
}

/// A task that kills every process that takes it.
void poison() {
    auto queue = carousel::ipc::open(space).work_queue<unsigned>("poison", 16, 3);
    (void)queue.submit(13, seconds(5));
    unsigned deaths = 0;
    for (const double end = now_us() + 5e6; queue.dead_letters() == 0 && now_us() < end;) {
        const pid_t pid = start([] {
            auto mine = carousel::ipc::open(space).work_queue<unsigned>("poison", 16, 3);
            for (int k = 0; k < 200; ++k, usleep(1000))
                if (auto task = mine.try_claim()) return kill(getpid(), SIGKILL);
            return 0;
        });
        deaths += end_of(pid) < 0;
        usleep(20'000);
    }
    std::printf("figure poison.deaths %u\nfigure poison.dead_letters %u\n", deaths, queue.dead_letters());
}

void run() {
    naive();
    held();
    poison();
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-work SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    return lesson::exit_code_of<carousel::error>([] {
        run();
        return 0;
    });
}
