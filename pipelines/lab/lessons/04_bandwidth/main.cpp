// Compares a process's own memory with memory of another process (a memfd that it made): bandwidth by size,
// latency by a pointer chase; then the maker of the memfd is killed, and this program measures the memory
// again.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "../program.hpp"

namespace {

constexpr size_t least = 16 << 10, most = 64 << 20, line = 64;
constexpr int rounds = 7;

double now_ns() { return lesson::now_us() * 1e3; }
double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

std::uint64_t sum(const std::uint64_t* at, size_t bytes) {
    std::uint64_t s[4] = {};
    for (size_t k = 0; k < bytes / 8; k += 4)
        for (size_t j = 0; j < 4; ++j) s[j] += at[k + j];
    return s[0] + s[1] + s[2] + s[3];
}
volatile std::uint64_t kept;  // keeps the compiler from removing the reads

/// Returns GB/s of one round.
double read_once(const void* at, size_t bytes) {
    const size_t times = std::max<size_t>(1, (8 << 20) / bytes);
    const double begin = now_ns();
    for (size_t k = 0; k < times; ++k) kept = sum(static_cast<const std::uint64_t*>(at), bytes);
    return static_cast<double>(bytes * times) / (now_ns() - begin);
}
/// Follows the offsets of lay_ring() from line to line, in an order that no prefetcher predicts; returns ns
/// per step.
double chase_once(const void* at, size_t bytes) {
    const size_t steps = std::min<size_t>(bytes / line, 100'000);
    std::uint64_t where = 0;
    const double begin = now_ns();
    for (size_t k = 0; k < steps; ++k)
        where = *reinterpret_cast<const volatile std::uint64_t*>(static_cast<const char*>(at) + where);
    kept = where;
    return (now_ns() - begin) / static_cast<double>(steps);
}
void lay_ring(void* at, size_t bytes) {
    std::vector<std::uint64_t> order(bytes / line);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    for (size_t k = 0; k < order.size(); ++k)
        *reinterpret_cast<std::uint64_t*>(static_cast<char*>(at) + order[k] * line) =
            order[(k + 1) % order.size()] * line;
}

void* make(int fd) {
    void* at =
        mmap(nullptr, most, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) _exit(9);
    std::memset(at, 0, most);
    return at;
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-bandwidth")) return 2;
    const int fd = memfd_create("lesson", 0);
    if (fd < 0 || ftruncate(fd, most) != 0) return 1;
    void* const own = make(-1);
    // Another process touches the pages first and runs until it is killed at the end.
    const pid_t maker = fork();
    if (maker == 0) {
        alarm(60);
        (void)make(fd);
        for (;;) pause();
    }
    void* const theirs = mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (theirs == MAP_FAILED) return 1;
    usleep(100'000);

    std::vector<double> read_ratios, chase_ratios;
    for (size_t bytes = least; bytes <= most; bytes *= 4) {
        lay_ring(own, bytes), lay_ring(theirs, bytes);
        std::vector<double> reads[2], chases[2];
        for (int k = 0; k < rounds; ++k)  // interleaved, so that other load on the machine affects both kinds
                                          // of memory
            for (int process = 0; process < 2; ++process) {
                reads[process].push_back(read_once(process == 0 ? own : theirs, bytes));
                chases[process].push_back(chase_once(process == 0 ? own : theirs, bytes));
            }
        const char* names[2] = {"own", "other-process"};
        for (int process = 0; process < 2; ++process)
            std::printf("curve %s %zu %.3f\n", names[process], bytes, median(reads[process]));
        read_ratios.push_back(median(reads[1]) / median(reads[0]));
        chase_ratios.push_back(median(chases[1]) / median(chases[0]));
        if (bytes * 4 > most)
            std::printf(
                "figure read.own %.3f\nfigure read.other %.3f\nfigure chase.own %.2f\nfigure chase.other "
                "%.2f\n",
                median(reads[0]), median(reads[1]), median(chases[0]), median(chases[1]));
    }
    std::printf("figure read.ratio %.4f\nfigure chase.ratio %.4f\n", median(read_ratios),
                median(chase_ratios));

    // Compares the best rounds before and after the death, because other load on the machine disturbs single
    // rounds by more than a death could.
    double before = 0, after = 0;
    for (int k = 0; k < rounds; ++k) before = std::max(before, read_once(theirs, most));
    kill(maker, SIGKILL);
    waitpid(maker, nullptr, 0);
    for (int k = 0; k < rounds; ++k) after = std::max(after, read_once(theirs, most));
    std::printf("figure killed.ratio %.3f\n", after / before);
    return 0;
}
