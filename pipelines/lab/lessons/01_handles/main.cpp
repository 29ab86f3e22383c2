// Sends a handle by each transport that the textbooks use, and shows what remains of the handle after its
// maker is killed.
//
// The handle has 64 bytes, like CUDA's. Here the handle is "/proc/PID/fd/N": a name for memory (a memfd) that
// another process can open while the maker is alive; the same holds for a legacy CUDA handle.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "../program.hpp"

namespace {

using lesson::now_us;

struct handle {
    char text[64];
};
constexpr unsigned magic = 0x5EED5EED;
constexpr size_t bytes = 4096;

int make_memory() {
    const int fd = memfd_create("lesson", 0);
    if (fd < 0 || ftruncate(fd, bytes) != 0 || pwrite(fd, &magic, sizeof magic, 0) != sizeof magic) _exit(9);
    return fd;
}
handle handle_of(int fd) {
    handle h{};
    std::snprintf(h.text, sizeof h.text, "/proc/%d/fd/%d", getpid(), fd);
    return h;
}
/// Returns true if the memory of the descriptor holds the expected word.
bool is_whole(int fd) {
    unsigned word = 0;
    return fd >= 0 && pread(fd, &word, sizeof word, 0) == sizeof word && word == magic;
}
bool opens(const handle& h) {
    const int fd = h.text[0] == '/' ? open(h.text, O_RDWR) : -1;
    const bool whole = is_whole(fd);
    if (fd >= 0) close(fd);
    return whole;
}

const std::string base = "/tmp/carousel-lesson-" + std::to_string(getpid());
const std::string shm_name = "/carousel-lesson-" + std::to_string(getpid());
const key_t shm_key = 0x4C000000 | (getpid() & 0xFFFFFF);
int sockets[2], pipes[2];

enum transport { sysv, posix, file, socket_, pipe_, transports };
const char* const names[transports] = {"sysv", "posix", "file", "socket", "fork"};

void send(transport r, const handle& h) {
    if (r == sysv) {
        void* at = shmat(shmget(shm_key, sizeof h, IPC_CREAT | 0600), nullptr, 0);
        std::memcpy(at, &h, sizeof h);
        shmdt(at);
    } else if (r == posix || r == file) {
        // Written under a temporary name and renamed, so that a reader that sees the name sees the complete
        // handle.
        const std::string to = (r == posix ? "/dev/shm" + shm_name : base), part = to + ".part";
        const int fd = open(part.c_str(), O_CREAT | O_WRONLY, 0600);
        if (write(fd, &h, sizeof h) == sizeof h) rename(part.c_str(), to.c_str());
        close(fd);
    } else if (write(r == socket_ ? sockets[0] : pipes[1], &h, sizeof h) != sizeof h) {
        _exit(9);
    }
}
/// Waits at most one second.
bool receive(transport r, handle& h) {
    for (const double end = now_us() + 1e6; now_us() < end;) {
        if (r == sysv) {
            const int id = shmget(shm_key, sizeof h, 0600);
            void* at = id < 0 ? reinterpret_cast<void*>(-1) : shmat(id, nullptr, SHM_RDONLY);
            if (at != reinterpret_cast<void*>(-1)) std::memcpy(&h, at, sizeof h), shmdt(at);
        } else if (r == posix || r == file) {
            const int fd =
                r == posix ? shm_open(shm_name.c_str(), O_RDONLY, 0) : open(base.c_str(), O_RDONLY);
            if (fd >= 0 && read(fd, &h, sizeof h) < 0) h = {};
            if (fd >= 0) close(fd);
        } else if (recv(r == socket_ ? sockets[1] : pipes[0], &h, sizeof h, MSG_DONTWAIT) < 0) {
            h = {};
        }
        if (h.text[0] == '/') return true;
    }
    return false;
}
bool outlives_maker(transport r) {
    if (r == sysv) return shmget(shm_key, 64, 0600) >= 0;
    if (r == file) return access(base.c_str(), F_OK) == 0;
    if (r == posix) return access(("/dev/shm" + shm_name).c_str(), F_OK) == 0;
    char c;
    return recv(r == socket_ ? sockets[1] : pipes[0], &c, 1, MSG_DONTWAIT) > 0;
}
void clear(transport r) {
    if (r == sysv) shmctl(shmget(shm_key, 64, 0600), IPC_RMID, nullptr);
    if (r == file) unlink(base.c_str());
    if (r == posix) shm_unlink(shm_name.c_str());
}

/// Starts a process that creates memory, sends its handle and runs until it is killed.
pid_t start_maker(transport r) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    alarm(10);
    send(r, handle_of(make_memory()));
    for (;;) pause();
}
void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
}

void try_transport(transport r) {
    handle h{};
    const double begin = now_us();
    const pid_t maker = start_maker(r);
    const bool got = receive(r, h);
    const double us = now_us() - begin;
    const bool whole = got && opens(h);
    end(maker);
    std::printf("figure %s.works %d\nfigure %s.us %.1f\n", names[r], whole, names[r], us);
    std::printf("figure %s.left %d\n", names[r], outlives_maker(r));
    if (r == file) std::printf("figure stale.opens %d\n", opens(h));  // the file is intact, the maker is dead
    clear(r);
}

/// Another process tries to use the number of a descriptor, and then the descriptor itself (sent by
/// SCM_RIGHTS). The maker is killed.
void try_descriptor() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) return;
    const pid_t maker = fork();
    char control[CMSG_SPACE(sizeof(int))] = {};
    int number = -1;
    iovec io{&number, sizeof number};
    msghdr m{};
    m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
    if (maker == 0) {
        alarm(10);
        number = dup2(make_memory(), 77);
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(c), &number, sizeof number);
        sendmsg(pair[1], &m, 0);
        for (;;) pause();
    }
    int mine = -1;
    if (recvmsg(pair[0], &m, 0) == sizeof number)
        std::memcpy(&mine, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof mine);
    std::printf("figure number.works %d\n", is_whole(number));
    void* at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, mine, 0);
    end(maker);
    std::printf("figure rights.works %d\n", is_whole(mine));  // the maker is dead
    std::printf("figure mapped.works %d\n", at != MAP_FAILED && *static_cast<unsigned*>(at) == magic);
}

/// The textbook's code: the maker opens the file and writes the handle; the other process waits until the
/// file exists. The maker is killed between these two steps.
void textbook() {
    const pid_t maker = fork();
    if (maker == 0) {
        alarm(10);
        FILE* out = std::fopen(base.c_str(), "wb");
        handle h = handle_of(make_memory());
        std::fwrite(&h, sizeof h, 1, out);  // stays in this process's buffer until fclose()
        pause();                            // the kill
        std::fclose(out);
    }
    while (access(base.c_str(), F_OK) != 0) usleep(100);
    usleep(20'000);
    end(maker);
    handle h;
    std::memset(&h, 0x55, sizeof h);  // stands for the arbitrary bytes on the stack
    FILE* in = std::fopen(base.c_str(), "rb");
    const size_t got = std::fread(&h, 1, sizeof h, in);  // the textbooks ignore the result
    std::fclose(in);
    std::printf("figure textbook.bytes %zu\nfigure textbook.opens %d\n", got, opens(h));
    unlink(base.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-handles SPACE")) return 2;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pipes) != 0)
        return 1;
    const int probe = shm_open(shm_name.c_str(), O_CREAT | O_RDWR, 0600);
    if (probe < 0) std::printf("missing shm no POSIX shared memory here: %s\n", std::strerror(errno));
    if (probe >= 0) close(probe), shm_unlink(shm_name.c_str());
    for (int r = 0; r < transports; ++r) {
        if (r == posix && probe < 0) continue;
        std::fflush(stdout);  // a child must not inherit buffered output, because it would print that output,
                              // too
        try_transport(static_cast<transport>(r));
    }
    std::fflush(stdout);
    try_descriptor();
    std::fflush(stdout);
    textbook();
    return 0;
}
