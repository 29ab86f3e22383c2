// Memory that is shared by descriptor outlives its maker and all its users while a process holds the
// descriptor, and is freed when the last descriptor is closed. For comparison, this program also makes named
// shared memory, which remains when no process is left.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::now_us;
using lesson::receive_fd;
using lesson::send_fd;
using lesson::start;

constexpr size_t bytes = 64 << 20, words = bytes / 4;
constexpr unsigned incarnations = 10;
const std::string name = "carousel-lesson-" + std::to_string(getpid());

void die() { kill(getpid(), SIGKILL); }

unsigned* map(int fd) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) _exit(9);
    return static_cast<unsigned*>(at);
}
/// Counts the processes that have this memory open or mapped, among those that this user may inspect.
int holders(const std::string& of) {
    int n = 0;
    for (const auto& p : std::filesystem::directory_iterator("/proc")) {
        if (!std::isdigit(p.path().filename().c_str()[0])) continue;
        std::error_code no;  // the process has ended or belongs to another user
        std::ifstream maps(p.path() / "maps");
        std::string line;
        bool holds = false;
        while (!holds && std::getline(maps, line)) holds = line.find(of) != std::string::npos;
        for (std::filesystem::directory_iterator f(p.path() / "fd", no), end; !no && f != end;
             f.increment(no))
            holds = holds || std::filesystem::read_symlink(*f, no).string().find(of) != std::string::npos;
        n += holds;
    }
    return n;
}

/// Holds the descriptor and sends it on request. It does nothing else.
int hold(int maker, int clients) {
    const int fd = receive_fd(maker);
    for (char asked; recv(clients, &asked, 1, 0) == 1;)
        if (!send_fd(clients, fd)) _exit(9);
    return 0;
}

void ten_incarnations() {
    int maker[2], clients[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, maker) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, clients) != 0)
        _exit(9);
    const pid_t holder = start([&] {
        close(clients[0]);
        return hold(maker[1], clients[1]);
    });
    (void)end_of(start([&] {
        const int fd = memfd_create(name.c_str(), MFD_ALLOW_SEALING);
        if (fd < 0 || ftruncate(fd, bytes) != 0) return 1;
        unsigned* at = map(fd);
        for (size_t k = 0; k < words; ++k) at[k] = static_cast<unsigned>(k);
        if (!send_fd(maker[0], fd)) _exit(9);
        die();
        return 0;
    }));
    close(clients[1]);
    unsigned damaged = 0;
    std::vector<double> times;
    for (unsigned incarnation = 0; incarnation < incarnations; ++incarnation) {
        const char request = 1;
        const double begin = now_us();
        if (send(clients[0], &request, 1, 0) != 1) break;
        const int fd = receive_fd(clients[0]);
        const bool whole = fd >= 0 && end_of(start([&] {
                                          unsigned* at = map(fd);
                                          for (size_t k = 0; k < words; ++k)
                                              if (at[k]++ != k + incarnation) return 1;
                                          die();
                                          return 1;
                                      })) == -SIGKILL;
        times.push_back(now_us() - begin);
        damaged += !whole;
        close(fd);
    }
    // The steps that a new process needs before it can read: receiving the descriptor, and mapping it.
    const char request = 1;
    const double begin = now_us();
    const bool asked = send(clients[0], &request, 1, 0) == 1;
    const int fd = asked ? receive_fd(clients[0]) : -1;
    const double got = now_us();
    unsigned* const at = map(fd);
    const unsigned first = *at;
    std::printf("figure processes.number %zu\nfigure processes.damaged %u\nfigure processes.count %u\n",
                times.size(), damaged, first);
    std::printf("figure descriptor.us %.1f\nfigure map.us %.1f\n", got - begin, now_us() - got);
    std::printf("figure held.by %d\n", holders(name));
    kill(holder, SIGKILL);
    (void)end_of(holder);
    // the memory can still be read, because this process has mapped it
    std::printf("figure orphan.count %u\n", *at);
    munmap(at, bytes), close(fd);
    std::printf("figure memfd.left %d\n", holders(name));
}

/// Shows what remains of named memory after its maker's death.
void names() {
    const key_t key = 0x4D000000 | (getpid() & 0xFFFFFF);
    (void)end_of(start([&] {
        (void)shmget(key, 4096, IPC_CREAT | 0600);
        const int fd = shm_open(("/" + name).c_str(), O_CREAT | O_RDWR, 0600);
        if (fd >= 0 && ftruncate(fd, 4096) == 0) die();
        die();
        return 0;
    }));
    const int id = shmget(key, 4096, 0600);
    std::printf("figure sysv.left %d\n", id >= 0);
    if (id >= 0) shmctl(id, IPC_RMID, nullptr);
    const int fd = shm_open(("/" + name).c_str(), O_RDWR, 0600);
    if (fd < 0 && access("/dev/shm", W_OK) != 0)
        std::printf("missing shm no POSIX shared memory here: %s\n", std::strerror(errno));
    std::printf("figure posix.left %d\n", fd >= 0);
    shm_unlink(("/" + name).c_str());
}

/// A process with the descriptor can truncate the memory, which kills every reader; a seal prevents that.
int reader_of(bool sealed, int& truncated) {
    const int fd = memfd_create(name.c_str(), MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, bytes) != 0) _exit(9);
    if (sealed) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    int ways[2];
    if (pipe(ways) != 0) _exit(9);
    const pid_t reader = start([&] {
        const volatile unsigned* at = map(fd);
        char go;
        return read(ways[0], &go, 1) == 1 && at[words - 1] == 0 ? 0 : 1;
    });
    truncated = ftruncate(fd, 0) == 0 ? 0 : errno;
    const bool sent = write(ways[1], "x", 1) == 1;
    close(fd), close(ways[0]), close(ways[1]);
    return sent ? end_of(reader) : -1;
}
void seals() {
    int truncated = 0;
    std::printf("figure unsealed.signal %d\n", -reader_of(false, truncated));
    std::printf("figure sealed.signal %d\n", -reader_of(true, truncated));
    std::printf("figure sealed.code %d\n", truncated);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-descriptors")) return 2;
    ten_incarnations();
    names();
    seals();
    return 0;
}
