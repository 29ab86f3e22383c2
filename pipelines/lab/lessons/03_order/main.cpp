// Two independently started programs: which of them waits for the other? The programs first use shared memory
// that both of them open, as in the textbooks, and then a space that a third process holds. Usage:
// carousel-lab-order SPACE (the name given to `carousel hold`)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <carousel/ipc.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "../program.hpp"

namespace {

const std::string shm_name = "/carousel-lesson-" + std::to_string(getpid());

double now_ms() { return lesson::now_us() / 1e3; }

/// Runs `body` in a child process; returns the exit code of the child, or minus the number of the signal that
/// ended the child.
template <class Body>
int apart(Body body) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        _exit(body());
    }
    return lesson::end_of(pid);
}

/// The textbooks' consumer: opens, maps and reads. Returns 0 if it read the producer's value.
int read_it(int flags) {
    const int fd = shm_open(shm_name.c_str(), flags, 0600);
    if (fd < 0) return errno == ENOENT ? 2 : 3;
    void* at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return 4;
    return *static_cast<volatile int*>(at) == 77 ? 0 : 5;
}

/// The textbooks' producer, which is killed after shm_open() or, if `bytes` > 0, after ftruncate().
void killed_producer(off_t bytes) {
    (void)apart([bytes] {
        const int fd = shm_open(shm_name.c_str(), O_CREAT | O_RDWR, 0600);
        if (bytes > 0 && ftruncate(fd, bytes) != 0) return 1;
        return kill(getpid(), SIGKILL);  // a producer that is not killed would call mmap() and store the
                                         // value 77
    });
}

void textbook() {
    const int probe = shm_open(shm_name.c_str(), O_CREAT | O_RDWR, 0600);
    if (probe < 0) {
        std::printf("missing shm no POSIX shared memory here: %s\n", std::strerror(errno));
        return;
    }
    close(probe), shm_unlink(shm_name.c_str());
    killed_producer(0);
    std::printf("figure unsized.signal %d\n", -apart([] { return read_it(O_RDONLY); }));
    shm_unlink(shm_name.c_str());
    killed_producer(4096);
    std::printf("figure unset.code %d\n", apart([] { return read_it(O_RDONLY); }));
    shm_unlink(shm_name.c_str());
    // The consumer starts first.
    std::printf("figure first.code %d\n", apart([] { return read_it(O_RDONLY); }));
}

/// A space that no process holds: the wait has a timeout, and the error explains the cause.
void without_holder() {
    const double begin = now_ms();
    try {
        (void)carousel::ipc::open("unheld-" + std::to_string(getpid()), {.wait_s = 0.3});
    } catch (const carousel::error& e) {
        const bool names = std::strstr(e.what(), "carousel hold") != nullptr;
        std::printf("%s\nfigure no_holder.ms %.0f\nfigure no_holder.names_it %d\n", e.what(),
                    now_ms() - begin, names);
    }
}

/// Starts the consumer 200 ms before the producer or, if `consumer_waits_ms` > 0, after the producer;
/// `killed`: the producer is killed right after its push.
void with_holder(const char* name, const std::string& space, const std::string& queue, int consumer_waits_ms,
                 bool killed) {
    std::fflush(stdout);
    const double begin = now_ms();
    const pid_t producer = fork();
    if (producer == 0) {
        alarm(20);
        if (consumer_waits_ms == 0) usleep(200'000);
        auto mine = carousel::ipc::open(space).queue<int>(queue, 16);
        mine.push(77, std::chrono::seconds(5));
        if (killed) kill(getpid(), SIGKILL);
        _exit(0);
    }
    usleep(static_cast<useconds_t>(consumer_waits_ms) * 1000);
    const int got = apart([&] {
        auto mine = carousel::ipc::open(space).queue<int>(queue, 16);
        return mine.pop(std::chrono::seconds(5)) == 77 ? 0 : 1;
    });
    std::printf("figure %s.got %d\nfigure %s.ms %.1f\n", name, got == 0, name, now_ms() - begin);
    waitpid(producer, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-order SPACE")) return 2;
    const std::string space = argc > 1 ? argv[1] : "lab";
    try {
        (void)carousel::ipc::open(space);  // reports an error here, because a child below could not report it
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
    textbook();
    without_holder();
    const std::string queue = "order-" + std::to_string(getpid());
    with_holder("consumer_first", space, queue + "-a", 0, false);
    with_holder("producer_first", space, queue + "-b", 200, false);
    with_holder("producer_killed", space, queue + "-c", 200, true);
    return 0;
}
