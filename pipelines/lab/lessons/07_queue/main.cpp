// A queue between processes, once as a naive ring whose cells are claimed by an index and once as a queue of
// a space. A producer is killed after it claims a cell and before it writes the value; a consumer is killed
// after its pop. Usage: carousel-lab-queue SPACE (the name given to `carousel hold`)
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

constexpr unsigned number = 20'000;

/// As in the textbooks: claim a cell, write, set its flag; the consumer takes the cells in order.
struct naive {
    std::atomic<unsigned> tail{0}, head{0};
    struct {
        std::atomic<bool> full{false};
        unsigned value = 0;
    } cells[64];
};
void naive_ring() {
    auto* q = shared_memory<naive>();
    const pid_t dead = start([&] {
        q->tail.fetch_add(1);
        return kill(getpid(), SIGKILL);  // the kill: the cell is claimed, but not yet written
    });
    (void)end_of(dead);
    const pid_t producer = start([&] {
        for (unsigned k = 0; k < 10; ++k) {
            auto& cell = q->cells[q->tail.fetch_add(1)];
            cell.value = k;
            cell.full = true;
        }
        return 0;
    });
    (void)end_of(producer);
    unsigned got = 0;
    for (const double end = now_us() + 5e5; now_us() < end && got < 10;)
        if (q->cells[q->head].full) ++q->head, ++got;
    std::printf("figure naive.got %u\n", got);
}

/// Two producers, one consumer: the order of each producer is kept, and no element is missing.
void held() {
    auto queue = carousel::ipc::open(space).queue<unsigned>("samples", 256);
    const double begin = now_us();
    pid_t pids[2];
    for (unsigned p = 0; p < 2; ++p)
        pids[p] = start([p] {
            auto mine = carousel::ipc::open(space).queue<unsigned>("samples", 256);
            for (unsigned k = 0; k < number; ++k) mine.push(k * 2 + p, seconds(5));
            return 0;
        });
    unsigned next[2] = {}, wrong = 0;
    for (unsigned k = 0; k < 2 * number; ++k) {
        const unsigned v = queue.pop(seconds(5));
        wrong += v / 2 != next[v % 2]++;
    }
    std::printf("figure held.wrong %u\nfigure held.number %u\nfigure held.ns %.0f\n", wrong, 2 * number,
                (now_us() - begin) * 1e3 / (2 * number));
    for (const pid_t pid : pids) (void)end_of(pid);
}

/// One consumer dies after pop(): the popped element is not delivered again (at most once). Another consumer
/// dies after lease(): the leased element is delivered again.
void dead_consumers() {
    auto queue = carousel::ipc::open(space).queue<unsigned>("leased", 16);
    queue.push(1, seconds(5));
    (void)end_of(start([] {
        (void)carousel::ipc::open(space).queue<unsigned>("leased", 16).pop(seconds(5));
        return kill(getpid(), SIGKILL);
    }));
    queue.push(2, seconds(5));
    (void)end_of(start([] {
        auto mine = carousel::ipc::open(space).queue<unsigned>("leased", 16);
        const auto leased = mine.lease(seconds(5));
        return kill(getpid(), SIGKILL);
    }));
    const double begin = now_us();
    unsigned got = 0;
    try {
        got = queue.pop(seconds(5));
    } catch (const carousel::ipc::timed_out&) {
        // the element was not redelivered
    }
    std::printf("figure leased.again %u\nfigure leased.us %.0f\nfigure popped.lost %d\n", got,
                now_us() - begin, static_cast<int>(queue.lost()));
}

void run() {
    naive_ring();
    held();
    dead_consumers();
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-queue SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    return lesson::exit_code_of<carousel::error>([] {
        run();
        return 0;
    });
}
