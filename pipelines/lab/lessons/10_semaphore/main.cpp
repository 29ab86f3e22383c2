// Processes share one permit, first through a naive semaphore, which is a counter in shared memory, then
// through a semaphore of a space. A process that holds the permit is killed. Usage: carousel-lab-semaphore
// SPACE (the name given to `carousel hold`)
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

struct naive {
    std::atomic<int> permits{1};
};
bool acquire(naive& s, double us) {
    for (const double end = now_us() + us; now_us() < end; usleep(10)) {
        int one = 1;
        if (s.permits.compare_exchange_weak(one, 0)) return true;
    }
    return false;
}

/// Four processes take turns to change a word. The word is not atomic, so two concurrent changes could lose
/// one of them.
void turns() {
    struct counted {
        volatile long value = 0;
    };
    auto* all = shared_memory<counted>();
    pid_t pids[4];
    const double begin = now_us();
    for (pid_t& pid : pids)
        pid = start([&] {
            auto turn = carousel::ipc::open(space).semaphore("turns", 1);
            for (int k = 0; k < 500; ++k) {
                const auto held = turn.acquire(seconds(10));
                all->value = all->value + 1;
            }
            return 0;
        });
    bool well = true;
    for (const pid_t pid : pids) well = end_of(pid) == 0 && well;
    std::printf("figure turns.well %d\nfigure turns.count %ld\nfigure turns.us %.1f\n", well, all->value,
                (now_us() - begin) / 2000);
}

void kill_naive_holder() {
    auto* s = shared_memory<naive>();
    const pid_t holder = start([&] { return acquire(*s, 1e6) ? pause() : 1; });
    while (s->permits.load() == 1) usleep(100);
    kill(holder, SIGKILL);
    (void)end_of(holder);
    std::printf("figure naive.again %d\n", acquire(*s, 1e6));
}

void kill_holder() {
    auto turn = carousel::ipc::open(space).semaphore("killed", 1);
    const pid_t holder = start([] {
        auto mine = carousel::ipc::open(space).semaphore("killed", 1);
        const auto held = mine.acquire(seconds(5));
        return pause();
    });
    while (turn.free() == 1) usleep(100);
    try {
        (void)turn.acquire(std::chrono::milliseconds(100));
    } catch (const carousel::ipc::timed_out& e) {
        std::printf("%s\nfigure bound.names %d\n", e.what(),
                    std::string(e.what()).find(std::to_string(holder)) != std::string::npos);
    }
    const double begin = now_us();
    kill(holder, SIGKILL);
    try {
        const auto mine = turn.acquire(seconds(5));
        std::printf("figure killed.again 1\nfigure killed.us %.1f\n", now_us() - begin);
    } catch (const carousel::ipc::timed_out&) {
        std::printf("figure killed.again 0\n");
    }
    (void)end_of(holder);
    std::printf("figure killed.free %u\n", turn.free());
}

void run() {
    turns();
    kill_naive_holder();
    kill_holder();
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-semaphore SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    return lesson::exit_code_of<carousel::error>([] {
        run();
        return 0;
    });
}
