// Tests whether a poller sees another process's writes with plain, volatile, relaxed and acquire loads. Also
// runs two litmus tests of memory order, maps one memory twice in one process, and kills the writer while
// another process polls its word.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <vector>

#include "../program.hpp"

namespace {

using lesson::now_us;

struct alignas(64) word {
    std::atomic<unsigned> value;
};
struct pair {
    word x, y;
    alignas(64) unsigned saw_x;
    alignas(64) unsigned saw_y;
};
constexpr unsigned lesson_pairs = 2048;
struct shared {
    alignas(64) unsigned plain;
    word flag, back, go, ready;
    alignas(64) unsigned data[64];
    pair pairs[lesson_pairs];
};
shared* all;

/// A plain load in a loop: the compiler may load only once, or remove a loop without side effects. Not
/// inlined, so that the loop is compiled by itself.
__attribute__((noinline)) void poll_plain(const unsigned* at) {
    while (*at == 0) {
    }
}
__attribute__((noinline)) void poll_volatile(const unsigned* at) {
    while (*static_cast<const volatile unsigned*>(at) == 0) {
    }
}
__attribute__((noinline)) void poll_relaxed(const unsigned* at) {
    // Atomic access to a plain word, equivalent to std::atomic_ref.
    while (__atomic_load_n(at, __ATOMIC_RELAXED) == 0) {
    }
}

/// Returns 1 if the poller saw the write within a second, 0 if not, 2 if the poller ended before the write.
int observed(void (*poll)(const unsigned*)) {
    all->plain = 0;
    const pid_t poller = fork();
    if (poller == 0) {
        alarm(5);
        poll(&all->plain);
        _exit(0);
    }
    usleep(50'000);
    if (waitpid(poller, nullptr, WNOHANG) == poller) return 2;
    __atomic_store_n(&all->plain, 1U, __ATOMIC_RELEASE);
    for (const double end = now_us() + 1e6; now_us() < end; usleep(1000))
        if (waitpid(poller, nullptr, WNOHANG) == poller) return 1;
    kill(poller, SIGKILL);
    waitpid(poller, nullptr, 0);
    return 0;
}

/// Writes data, then a flag; counts how often the reader saw the flag with old data.
void message(const char* name, std::memory_order store, std::memory_order load) {
    constexpr unsigned tries = 20'000;
    all->flag.value = all->back.value = 0;
    const pid_t writer = fork();
    if (writer == 0) {
        alarm(20);
        for (unsigned k = 1; k <= tries; ++k) {
            for (unsigned& d : all->data) __atomic_store_n(&d, k, __ATOMIC_RELAXED);
            all->flag.value.store(k, store);
            while (all->back.value.load(std::memory_order_acquire) != k) {
            }
        }
        _exit(0);
    }
    unsigned torn = 0;
    std::vector<double> round;
    for (unsigned k = 1; k <= tries; ++k) {
        const double begin = now_us();
        for (unsigned long spins = 0; all->flag.value.load(load) != k;)
            if (++spins % 4096 == 0 && now_us() > begin + 2e6) _exit(1);
        for (const unsigned& d : all->data)
            if (__atomic_load_n(&d, __ATOMIC_RELAXED) != k) {
                ++torn;
                break;
            }
        all->back.value.store(k, std::memory_order_release);
        round.push_back(now_us() - begin);
    }
    waitpid(writer, nullptr, 0);
    std::nth_element(round.begin(), round.begin() + tries / 2, round.end());
    std::printf("figure %s.torn %u\nfigure %s.tries %u\nfigure %s.hop_us %.3f\n", name, torn, name, tries,
                name, round[tries / 2] / 2);
}

/// Each process writes its own word and reads the other's (the store buffering test): can both processes read
/// 0? The processor's memory model allows this result. Many pairs run in succession without synchronization
/// in between, so that the delay between the two processes takes many different values.
void both_zero(const char* name, std::memory_order order) {
    constexpr unsigned batches = 50;
    unsigned both = 0;
    for (unsigned batch = 0; batch < batches; ++batch) {
        for (pair& p : all->pairs) p.x.value = p.y.value = 0;
        all->go.value = all->ready.value = 0;
        const pid_t other = fork();
        if (other == 0) {
            alarm(5);
            all->ready.value.store(1);
            while (all->go.value.load() == 0) {
            }
            for (pair& p : all->pairs) {
                p.y.value.store(1, order);
                p.saw_x = p.x.value.load(order);
            }
            _exit(0);
        }
        while (all->ready.value.load() == 0) {
        }
        all->go.value.store(1);
        for (pair& p : all->pairs) {
            p.x.value.store(1, order);
            p.saw_y = p.y.value.load(order);
        }
        waitpid(other, nullptr, 0);
        for (const pair& p : all->pairs) both += p.saw_x == 0 && p.saw_y == 0;
    }
    std::printf("figure %s.both_zero %u\nfigure %s.tries %u\n", name, both, name, batches * lesson_pairs);
}

void mapped_twice() {
    const int fd = memfd_create("lesson", 0);
    if (fd < 0 || ftruncate(fd, 4096) != 0) return;
    void* a = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void* b = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (a == MAP_FAILED || b == MAP_FAILED) return;
    *static_cast<volatile unsigned*>(a) = 77;
    std::printf("figure twice.two_places %d\nfigure twice.same %d\n", a != b,
                *static_cast<volatile unsigned*>(b) == 77);
    close(fd);
}

void killed_writer() {
    all->plain = 0;
    const pid_t writer = fork();
    if (writer == 0) {
        alarm(5);
        pause();  // the kill
        __atomic_store_n(&all->plain, 1U, __ATOMIC_RELEASE);
    }
    const pid_t poller = fork();
    if (poller == 0) {
        alarm(5);
        poll_relaxed(&all->plain);
        _exit(0);
    }
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    usleep(500'000);
    std::printf("figure killed.poller_ends %d\n", waitpid(poller, nullptr, WNOHANG) == poller);
    // A process that learns of the death writes instead of the dead process.
    const double begin = now_us();
    __atomic_store_n(&all->plain, 2U, __ATOMIC_RELEASE);
    std::printf("figure killed.saved %d\nfigure killed.us %.1f\n", waitpid(poller, nullptr, 0) == poller,
                now_us() - begin);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-coherence")) return 2;
    all = lesson::shared_memory<shared>();
    std::printf("figure plain.sees %d\n", observed(poll_plain));
    std::fflush(stdout);
    std::printf("figure volatile.sees %d\n", observed(poll_volatile));
    std::fflush(stdout);
    std::printf("figure relaxed.sees %d\n", observed(poll_relaxed));
    std::fflush(stdout);
    message("relaxed", std::memory_order_relaxed, std::memory_order_relaxed);
    std::fflush(stdout);
    message("acquire", std::memory_order_release, std::memory_order_acquire);
    std::fflush(stdout);
    both_zero("weak", std::memory_order_relaxed);
    std::fflush(stdout);
    both_zero("seq_cst", std::memory_order_seq_cst);
    std::fflush(stdout);
    mapped_twice();
    std::fflush(stdout);
    killed_writer();
    return 0;
}
