// Two tenants of one machine: what a process of one user can see of the processes of another user, and what
// it can do to these processes. Needs the right to become two users (root); without it, only tries what
// processes of the same user can do to each other. Usage: carousel-lab-tenants SPACE (the name given to
// `carousel hold`)
#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <carousel/ipc.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::receive_fd;
using lesson::send_fd;
using lesson::start;

constexpr uid_t owner = 65533, other_user = 65534;
constexpr unsigned secret = 0x5EC2E7;
const std::string name = "carousel-lesson-" + std::to_string(getpid());
const key_t private_key = 0x4E000000 | (getpid() & 0xFFFFFF), public_key = private_key + 1;
std::string space;

struct board {
    std::atomic<int> step, memory_fd, peer_uid;
    unsigned* address;
};
board* shared;

bool become(uid_t user) {
    if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)
        return false;
    return prctl(PR_SET_DUMPABLE, 1) == 0;  // behaves like a program that this user has started
}
int accesses;
void figure(const std::string& what, int value) { std::printf("figure %s %d\n", what.c_str(), value); }
void record_access(const std::string& what, bool leads_there) {
    figure(what, leads_there), accesses += leads_there;
}

int memory_of(const char* path, mode_t mode) {
    const int fd = path != nullptr ? shm_open(path, O_CREAT | O_RDWR, mode) : memfd_create("lesson", 0);
    if (fd < 0 || (path != nullptr && fchmod(fd, mode) != 0) || ftruncate(fd, 4096) != 0 ||
        pwrite(fd, &secret, sizeof secret, 0) != sizeof secret)
        return -1;
    return fd;
}
bool reads_secret(int fd) {
    unsigned word = 0;
    return fd >= 0 && pread(fd, &word, sizeof word, 0) == sizeof word && word == secret;
}
sockaddr_un abstract_address(socklen_t& length) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path + 1, name.c_str(), sizeof at.sun_path - 2);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return at;
}

/// Stores a secret in every kind of memory, and sends the memfd to every process that connects.
int owner_main(uid_t user) {
    if (user != 0 && !become(user)) return 2;
    static unsigned in_memory = secret;
    shared->address = &in_memory;
    shared->memory_fd = memory_of(nullptr, 0);
    (void)memory_of(("/" + name + "-private").c_str(), 0600);
    (void)memory_of(("/" + name + "-public").c_str(), 0644);
    for (const auto& [key, mode] : {std::pair{private_key, 0600}, std::pair{public_key, 0644}}) {
        void* at = shmat(shmget(key, 4096, IPC_CREAT | mode), nullptr, 0);
        if (reinterpret_cast<intptr_t>(at) != -1) std::memcpy(at, &secret, sizeof secret);
    }
    socklen_t length = 0;
    const sockaddr_un at = abstract_address(length);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const bool listens =
        bind(listener, reinterpret_cast<const sockaddr*>(&at), length) == 0 && listen(listener, 4) == 0;
    shared->step = listens ? 1 : -1;
    for (;;) {
        const int peer = accept(listener, nullptr, nullptr);
        ucred client{};
        socklen_t size = sizeof client;
        if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &client, &size) == 0)
            shared->peer_uid = static_cast<int>(client.uid);
        send_fd(peer, shared->memory_fd);
        close(peer);
    }
}

bool opens_sysv(key_t key) {
    const void* at = shmat(shmget(key, 0, 0), nullptr, SHM_RDONLY);
    return reinterpret_cast<intptr_t>(at) != -1 && std::memcmp(at, &secret, sizeof secret) == 0;
}
bool reads_file(pid_t pid, const char* file) {
    char some[16];
    const int fd = open(("/proc/" + std::to_string(pid) + "/" + file).c_str(), O_RDONLY);
    return fd >= 0 && read(fd, some, sizeof some) > 0;
}
/// Tries every way to read the secret without the owner's help; a figure of 1 means access.
void probe(const std::string& client, pid_t at) {
    record_access(
        client + ".proc_fd",
        reads_secret(open(
            ("/proc/" + std::to_string(at) + "/fd/" + std::to_string(shared->memory_fd)).c_str(), O_RDONLY)));
    unsigned word = 0;
    const iovec here{&word, sizeof word}, there{shared->address, sizeof word};
    record_access(client + ".vm_readv",
                  process_vm_readv(at, &here, 1, &there, 1, 0) == sizeof word && word == secret);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, at, 0));
    record_access(
        client + ".pidfd_getfd",
        reads_secret(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, shared->memory_fd.load(), 0))));
    record_access(client + ".signal", kill(at, 0) == 0);
    record_access(client + ".environ", reads_file(at, "environ")),
        record_access(client + ".cmdline", reads_file(at, "cmdline"));
    record_access(client + ".sysv_private", opens_sysv(private_key)),
        record_access(client + ".sysv_public", opens_sysv(public_key));
    record_access(client + ".shm_private",
                  reads_secret(shm_open(("/" + name + "-private").c_str(), O_RDONLY, 0)));
    record_access(client + ".shm_public",
                  reads_secret(shm_open(("/" + name + "-public").c_str(), O_RDONLY, 0)));
    figure(client + ".open", accesses);
}
bool opens_space() {
    try {
        (void)carousel::ipc::open(space, {.wait_s = 0.2});
        return true;
    } catch (const carousel::error&) {
        return false;
    }
}
/// The process of another user (of the same user if `user` is 0) that tries to get the secret.
int other_user_main(const std::string& client, uid_t user, pid_t at) {
    if (user != 0 && !become(user)) return 2;
    probe(client, at);
    socklen_t length = 0;
    const sockaddr_un address = abstract_address(length);
    const int way = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const bool connects = connect(way, reinterpret_cast<const sockaddr*>(&address), length) == 0;
    figure(client + ".connects", connects);
    figure(client + ".given", connects && reads_secret(receive_fd(way)));
    figure(client + ".known", shared->peer_uid == static_cast<int>(getuid()));
    if (client == "other") figure(client + ".space", opens_space());
    const auto* fresh = static_cast<const unsigned*>(
        mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    unsigned found = 0;
    for (size_t k = 0; fresh != MAP_FAILED && k < (64 << 20) / sizeof *fresh; ++k) found += fresh[k] != 0;
    figure(client + ".fresh", static_cast<int>(found));
    return 0;
}

bool wait_for_owner() {
    for (int k = 0; k < 5000 && shared->step == 0; ++k) usleep(1000);
    return shared->step == 1;
}
void clear() {
    for (const key_t key : {private_key, public_key}) shmctl(shmget(key, 0, 0), IPC_RMID, nullptr);
    for (const char* kind : {"-private", "-public"}) shm_unlink(("/" + name + kind).c_str());
}
/// Runs an owner and a prober; then kills the owner and checks what remains of its memory.
void tenants(const std::string& client, uid_t of_owner, uid_t of_other_user) {
    shared->step = 0;
    const pid_t at = start([&] { return owner_main(of_owner); });
    if (wait_for_owner()) (void)end_of(start([&] { return other_user_main(client, of_other_user, at); }));
    kill(at, SIGKILL);
    (void)end_of(at);
    (void)end_of(start([&] {
        if (of_other_user != 0 && !become(of_other_user)) return 2;
        figure(client + ".dead_shm", reads_secret(shm_open(("/" + name + "-public").c_str(), O_RDONLY, 0)));
        figure(client + ".dead_sysv", opens_sysv(public_key));
        return 0;
    }));
    clear();
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-tenants SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    shared = lesson::shared_memory<board>();
    if (access("/dev/shm", W_OK) != 0)
        std::printf("missing two_users_and_shm no POSIX shared memory here: %s\n", std::strerror(errno));
    const bool may_become = end_of(start([] { return become(owner) ? 0 : 2; })) == 0;
    tenants("same", may_become ? owner : 0, may_become ? owner : 0);
    if (may_become)
        tenants("other", owner, other_user);
    else
        for (const char* need : {"two_users", "two_users_and_shm"})
            std::printf(
                "missing %s this process may not become another user: start the lab as root for that\n",
                need);
    return 0;
}
