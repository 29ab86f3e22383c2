// Processes share blocks of one memory, first through a naive pool, which is a bitmap in shared memory, then
// through a pool of a space. Processes that hold blocks are killed. Usage: carousel-lab-pool SPACE (the name
// given to `carousel hold`)
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

constexpr unsigned blocks = 16, kills = 20, unit = 65536;

struct naive {
    std::atomic<unsigned> taken{0};  // one bit per block
};
int take(naive& p) {
    for (unsigned k = 0; k < blocks; ++k)
        if ((p.taken.fetch_or(1U << k) & (1U << k)) == 0) return static_cast<int>(k);
    return -1;
}

void leak() {
    auto* p = shared_memory<naive>();
    unsigned served = 0;
    for (unsigned k = 0; k < kills; ++k) {
        auto* mine = shared_memory<std::atomic<int>>();
        *mine = -2;
        const pid_t holder = start([&] {
            *mine = take(*p);
            return pause();
        });
        while (*mine == -2) usleep(100);
        served += *mine >= 0;
        kill(holder, SIGKILL);
        (void)end_of(holder);
    }
    std::printf("figure naive.served %u\nfigure naive.left %d\n", served,
                static_cast<int>(blocks) - __builtin_popcount(p->taken));
}

void held() {
    auto pool = carousel::ipc::open(space).pool("blocks", blocks * unit, unit);
    unsigned served = 0;
    double longest = 0;
    for (unsigned k = 0; k < kills; ++k) {
        auto* got = shared_memory<std::atomic<int>>();
        const pid_t holder = start([&] {
            auto mine = carousel::ipc::open(space).pool("blocks", blocks * unit, unit);
            const auto block = mine.acquire(unit, seconds(5));
            *got = 1;
            return pause();
        });
        for (int wait = 0; *got == 0 && wait < 50'000; ++wait) usleep(100);
        served += *got == 1;
        const double begin = now_us();
        kill(holder, SIGKILL);
        while (pool.state().free_bytes < blocks * unit && now_us() < begin + 5e6) usleep(50);
        longest = longest < now_us() - begin ? now_us() - begin : longest;
        (void)end_of(holder);
    }
    std::printf(
        "figure held.served %u\nfigure held.kills %u\nfigure held.free %d\nfigure held.longest_us %.0f\n",
        served, kills, static_cast<int>(pool.state().free_bytes / unit), longest);
}

/// A block's offset is the same in every process; its address may differ between processes.
void travels() {
    auto lab = carousel::ipc::open(space);
    auto pool = lab.pool("travelling", blocks * unit, unit);
    auto way = lab.block_queue<int>("way", 4, pool);
    const pid_t giver = start([] {
        auto mine = carousel::ipc::open(space);
        auto from = mine.pool("travelling", blocks * unit, unit);
        auto block = from.acquire(unit, seconds(5));
        block.data()[0] = std::byte{77};
        mine.block_queue<int>("way", 4, from).send(std::move(block), 1, seconds(5));
        return kill(getpid(), SIGKILL);
    });
    const auto got = way.receive(seconds(5));
    (void)end_of(giver);
    std::printf("figure given.whole %d\n", got.block.data()[0] == std::byte{77});
}

void run() {
    leak();
    held();
    travels();
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-pool SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    return lesson::exit_code_of<carousel::error>([] {
        run();
        return 0;
    });
}
