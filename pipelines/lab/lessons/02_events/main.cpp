// Models an event between processes by words in shared memory: a flag that is set too early, a flag that is
// set in time, a semaphore whose poster is killed, and a word that another process may write.
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "../program.hpp"

namespace {

using lesson::now_us;

constexpr unsigned tries = 50, words = 16384;
enum : unsigned { idle, submitted, done, aborted };

struct shared {
    std::atomic<unsigned> ready, seen;  // number of the frame
    std::atomic<unsigned> job;          // idle, submitted, done or aborted
    sem_t posted;
    volatile unsigned data[words];
};
shared* all;

void work(unsigned number) {
    for (volatile unsigned& word : all->data) word = number;
}
bool is_done(unsigned number) {
    for (const volatile unsigned& word : all->data)
        if (word != number) return false;
    return true;
}
bool wait_until(const std::atomic<unsigned>& word, unsigned value) {
    for (const double end = now_us() + 1e6; now_us() < end;)
        if (word.load(std::memory_order_acquire) == value) return true;
    return false;
}

/// Passes frames between two processes; `early`: as in the textbooks, the flag is set before the work.
void frames(const char* name, bool early) {
    all->ready = all->seen = 0;
    const pid_t producer = fork();
    if (producer == 0) {
        alarm(20);
        for (unsigned k = 1; k <= tries; ++k) {
            if (early) all->ready.store(k, std::memory_order_release);
            usleep(500);  // earlier work on the stream
            work(k);
            if (!early) all->ready.store(k, std::memory_order_release);
            if (!wait_until(all->seen, k)) _exit(1);
        }
        _exit(0);
    }
    unsigned wrong = 0;
    for (unsigned k = 1; k <= tries; ++k) {
        if (!wait_until(all->ready, k)) break;
        wrong += !is_done(k);
        all->seen.store(k, std::memory_order_release);
    }
    waitpid(producer, nullptr, 0);
    std::printf("figure %s.wrong %u\nfigure %s.tries %u\n", name, wrong, name, tries);
}

/// Uses the textbook's flag again. The producer is killed after it sets the flag.
void textbook() {
    all->ready = 0;
    const pid_t producer = fork();
    if (producer == 0) {
        alarm(20);
        all->ready.store(77, std::memory_order_release);
        pause();  // the kill
        work(77);
    }
    const bool ready = wait_until(all->ready, 77);
    kill(producer, SIGKILL);
    waitpid(producer, nullptr, 0);
    std::printf("figure textbook.ready %d\nfigure textbook.whole %d\n", ready, is_done(77));
}

/// Waits for a semaphore to be posted by a process that is killed. The wait has a timeout; the textbooks'
/// sem_wait() would block for ever.
void dead_poster() {
    sem_init(&all->posted, 1, 0);
    const pid_t poster = fork();
    if (poster == 0) {
        alarm(20);
        pause();  // the kill
        sem_post(&all->posted);
    }
    kill(poster, SIGKILL);
    waitpid(poster, nullptr, 0);
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    std::printf("figure hang.released %d\n", sem_timedwait(&all->posted, &until) == 0);
}

/// A process waits on a word. A third process sees the death by a pidfd and writes the word.
void word_that_saves() {
    all->job = submitted;
    const pid_t producer = fork();
    if (producer == 0) {
        alarm(20);
        pause();
    }
    const pid_t waiter = fork();
    if (waiter == 0) {
        alarm(20);
        const timespec second{1, 0};
        for (int k = 0; k < 10 && all->job.load() == submitted; ++k)
            syscall(SYS_futex, &all->job, FUTEX_WAIT, submitted, &second, nullptr, 0);
        _exit(all->job.load() == aborted ? 0 : 1);
    }
    pollfd death{static_cast<int>(syscall(SYS_pidfd_open, producer, 0)), POLLIN, 0};
    usleep(50'000);
    const double begin = now_us();
    kill(producer, SIGKILL);
    const bool seen = poll(&death, 1, 5000) == 1;
    unsigned was = submitted;
    all->job.compare_exchange_strong(was, aborted);  // the final state is either done or aborted, never both
    syscall(SYS_futex, &all->job, FUTEX_WAKE, 1000, nullptr, nullptr, 0);
    int status = 0;
    waitpid(waiter, &status, 0);
    std::printf("figure word.saved %d\nfigure word.us %.1f\n", seen && status == 0, now_us() - begin);
    waitpid(producer, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-events")) return 2;
    all = lesson::shared_memory<shared>();
    frames("early", true);
    std::fflush(stdout);
    frames("late", false);
    std::fflush(stdout);
    textbook();
    std::fflush(stdout);
    dead_poster();
    std::fflush(stdout);
    word_that_saves();
    return 0;
}
