// What a process of one MPS domain sees of a process of another one that dies: the measurement on which the
// takeover by a standby in a spare domain rests.
//
//   mps_domains [SECONDS]      how long a poller watches [3]
//
// A memory owner outside of both domains makes a row of counters (VMM, passed as a descriptor). A victim in
// domain A maps it, starts a kernel that counts (1 s, or endless) and records an IPC event after it. A
// poller in domain B maps the same memory and polls that event; another poller has made a stream wait for it.
// Then something of A dies. Printed for each case: when the event reads complete, whether the counters still
// change then, and whether the pollers' own kernels still run. "domain": the client, the daemon and the
// server are killed, as the supervisor does when standbys take over; their end is its fence. This process
// never touches CUDA. Exit code 1: a poller of B was harmed, an event read complete after a kernel that was
// aborted, except by terminate_client, or the kernel wrote after that fence.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/cuda/mps_children.hpp"

namespace {

using namespace carousel::test;

constexpr int threads = 256;
constexpr size_t bytes = size_t{2} << 20;
constexpr const char* control = "nvidia-cuda-mps-control";

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

__global__ void count_for(unsigned* at, unsigned long long ns) {
    unsigned long long begin = 0, now = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        atomicAdd(at + threadIdx.x, 1U);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (ns == 0 || now - begin < ns);
    if (threadIdx.x == 0) at[threads] = 1;  // the kernel has ended by itself
}
__global__ void touch(unsigned* at) { atomicAdd(at, 1U); }
__global__ void fault(unsigned* at) { at[size_t{1} << 40] = 1; }

// The driver is not linked, so that the program starts and reports a missing GPU.
template <typename F>
F function(const char* name) {
    static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<F>(library != nullptr ? ::dlsym(library, name) : nullptr);
}
#define CALL(name, ...) function<decltype(&name)>(#name)(__VA_ARGS__)

CUmemAllocationProp properties() {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return p;
}

unsigned* map(CUmemGenericAllocationHandle memory) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (CALL(cuMemAddressReserve, &at, bytes, 0, 0, 0) != CUDA_SUCCESS ||
        CALL(cuMemMap, at, bytes, 0, memory, 0) != CUDA_SUCCESS ||
        CALL(cuMemSetAccess, at, bytes, &access, 1) != CUDA_SUCCESS)
        std::exit(3);
    return reinterpret_cast<unsigned*>(at);
}

unsigned* imported() {
    if (cudaFree(nullptr) != cudaSuccess) std::exit(3);
    CUmemGenericAllocationHandle memory = 0;
    if (CALL(cuMemImportFromShareableHandle, &memory, reinterpret_cast<void*>(intptr_t{memory_fd}),
             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS)
        std::exit(3);
    return map(memory);
}

// Passes the memory's descriptor over the socket result_fd, and answers each byte with the first counter and
// the word after the counters.
int memory_owner() {
    if (cudaFree(nullptr) != cudaSuccess) return 3;
    const CUmemAllocationProp p = properties();
    CUmemGenericAllocationHandle memory = 0;
    int fd = -1;
    if (CALL(cuMemCreate, &memory, bytes, &p, 0) != CUDA_SUCCESS ||
        CALL(cuMemExportToShareableHandle, &fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) !=
            CUDA_SUCCESS)
        return 3;
    unsigned* const at = map(memory);
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMemsetAsync(at, 0, bytes, stream) != cudaSuccess || cudaStreamSynchronize(stream) != cudaSuccess)
        return 3;
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = {};
    iovec text{&byte, 1};
    msghdr m{};
    m.msg_iov = &text, m.msg_iovlen = 1, m.msg_control = room, m.msg_controllen = sizeof room;
    cmsghdr* const c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (::sendmsg(result_fd, &m, 0) != 1) return 4;
    while (::read(result_fd, &byte, 1) == 1) {
        unsigned words[threads + 1];
        if (cudaMemcpyAsync(words, at, sizeof words, cudaMemcpyDeviceToHost, stream) != cudaSuccess ||
            cudaStreamSynchronize(stream) != cudaSuccess)
            return 5;
        const unsigned both[2] = {words[0], words[threads]};
        if (::write(result_fd, both, sizeof both) != sizeof both) return 4;
    }
    return 0;
}

int victim(unsigned long long ns) {
    unsigned* const at = imported();
    cudaEvent_t event;
    cudaIpcEventHandle_t handle;
    cudaStream_t stream, other;
    if (cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming) != cudaSuccess ||
        cudaIpcGetEventHandle(&handle, event) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess)
        return 3;
    count_for<<<1, threads, 0, stream>>>(at, ns);
    if (cudaEventRecord(event, stream) != cudaSuccess) return 3;
    if (::write(result_fd, &handle, sizeof handle) != sizeof handle) return 4;
    for (char order; ::read(result_fd, &order, 1) == 1;) {
        if (order == 'x') ::_exit(0);
        fault<<<1, 1, 0, other>>>(at);
        (void)cudaStreamQuery(other);
    }
    return 0;
}

// Polls for `seconds`; prints "complete MS" or "not ready", then "healthy" or the error of its own kernel.
int poller(double seconds, bool waits) {
    unsigned* const at = imported();
    cudaIpcEventHandle_t handle;
    cudaEvent_t event, marked;
    cudaStream_t stream, own;
    if (::read(result_fd, &handle, sizeof handle) != sizeof handle) return 4;
    if (cudaIpcOpenEventHandle(&event, handle) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess ||
        cudaEventCreateWithFlags(&marked, cudaEventDisableTiming) != cudaSuccess)
        return 3;
    touch<<<1, 1, 0, own>>>(at + 2 * threads);  // loads the kernel before anything waits
    if (cudaStreamSynchronize(own) != cudaSuccess) return 3;
    cudaError_t wait = cudaSuccess;
    if (waits) {
        wait = cudaStreamWaitEvent(stream, event, 0);
        touch<<<1, 1, 0, stream>>>(at + 2 * threads);
        if (wait == cudaSuccess) wait = cudaEventRecord(marked, stream);
        event = marked;
    }
    char go = 0;
    if (::write(result_fd, "r", 1) != 1 || ::read(result_fd, &go, 1) != 1) return 4;
    const double begin = now_ms();
    cudaError_t state = wait == cudaSuccess ? cudaErrorNotReady : wait;
    while (state == cudaErrorNotReady && now_ms() - begin < seconds * 1000) {
        ::usleep(500);
        state = cudaEventQuery(event);
    }
    const double after = now_ms() - begin;
    touch<<<1, 1, 0, own>>>(at + 2 * threads);
    cudaError_t health = cudaErrorNotReady;
    for (const double until = now_ms() + 1000; health == cudaErrorNotReady && now_ms() < until; ::usleep(500))
        health = cudaStreamQuery(own);
    char line[200];
    const int n = std::snprintf(line, sizeof line, "%s %.0f %s\n",
                                state == cudaSuccess         ? "complete"
                                : state == cudaErrorNotReady ? "not-ready"
                                                             : cudaGetErrorName(state),
                                after, health == cudaSuccess ? "healthy" : cudaGetErrorName(health));
    (void)::write(result_fd, line, static_cast<size_t>(n));
    ::_exit(0);
}

// ---- this side never touches CUDA

bool is_readable(int fd, int ms) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, ms) == 1;
}

std::string line_of(const child& c, int ms) {
    std::string text;
    for (char byte; is_readable(c.socket, ms) && ::read(c.socket, &byte, 1) == 1 && byte != '\n';)
        text += byte;
    return text.empty() ? "no answer" : text;
}

int descriptor_of(const child& owner) {
    char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
    iovec text{&byte, 1};
    msghdr m{};
    m.msg_iov = &text, m.msg_iovlen = 1, m.msg_control = room, m.msg_controllen = sizeof room;
    if (!is_readable(owner.socket, 10'000) || ::recvmsg(owner.socket, &m, MSG_CMSG_CLOEXEC) != 1) return -1;
    int fd = -1;
    const cmsghdr* const c = CMSG_FIRSTHDR(&m);
    if (c != nullptr) std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

/// The first counter and the word after the counters.
std::pair<unsigned, unsigned> counters_of(const child& owner) {
    unsigned both[2] = {};
    if (::write(owner.socket, "?", 1) != 1 || !is_readable(owner.socket, 5000) ||
        ::read(owner.socket, both, sizeof both) != sizeof both)
        return {0, 0};
    return {both[0], both[1]};
}

struct domain {
    std::string folder;
    explicit domain(const std::string& in) : folder(in) {
        ::mkdir(folder.c_str(), 0700);
        (void)command(std::string(control) + " -d >/dev/null 2>&1 </dev/null");
        (void)command("echo start_server -uid " + std::to_string(::getuid()) + " | " + control);
    }
    ~domain() {
        for (const int pid : {server(), daemon()})
            if (pid > 0) ::kill(pid, SIGKILL);
    }
    std::string command(const std::string& words) const {
        std::string output;
        FILE* const p = ::popen(("CUDA_MPS_PIPE_DIRECTORY=" + folder + " CUDA_MPS_LOG_DIRECTORY=" + folder +
                                 " CUDA_MPS_PROTOCOL_VERSION=2 timeout 5 sh -c '" + words + "'")
                                    .c_str(),
                                "r");
        for (int c; p != nullptr && (c = std::fgetc(p)) != EOF;) output += static_cast<char>(c);
        if (p != nullptr) ::pclose(p);
        return output;
    }
    int server() const {
        return std::atoi(command(std::string("echo get_server_list | ") + control).c_str());
    }
    int daemon() const { return std::atoi(command("cat " + folder + "/" + control + ".pid").c_str()); }
    static std::string name_of(int pid) {
        std::string name;
        if (FILE* const f = std::fopen(("/proc/" + std::to_string(pid) + "/comm").c_str(), "r");
            f != nullptr) {
            for (int c; (c = std::fgetc(f)) != EOF && c != '\n';) name += static_cast<char>(c);
            std::fclose(f);
        }
        return name;
    }
};

/// Ends a domain by force, and returns what happened after that. A pidfd is readable when all threads have
/// ended. The state in /proc is that of the first thread, which ends before the others have closed the
/// driver's files.
std::string end_domain(const domain& a, const child& client, const child& owner) {
    const int pids[] = {client.pid, a.daemon(), a.server()};
    int ends[std::size(pids)];
    for (size_t k = 0; k < std::size(pids); ++k) {
        ends[k] = pids[k] > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pids[k], 0)) : -1;
        if (ends[k] < 0) return "NOT FENCED: the daemon or the server is not known";
    }
    for (const int pid : pids) ::kill(pid, SIGKILL);
    const double begun = now_ms();
    for (size_t k = 0; k < std::size(pids); ++k) {
        if (!is_readable(ends[k], 5000))
            return "NOT FENCED: process " + std::to_string(pids[k]) + " does not end";
        ::close(ends[k]);
    }
    const double gone = now_ms() - begun;
    const auto at_fence = counters_of(owner);
    if (at_fence.first == 0) return "NOT FENCED: the kernel had not begun";
    ::usleep(300'000);
    const bool writes = counters_of(owner).first != at_fence.first;
    return (writes ? "NOT FENCED: writes after " : "fenced after ") + std::to_string(gone) + " ms";
}

bool one_case(const std::string& folder, const std::string& what, bool endless, const std::string& seconds) {
    domain a(folder + "/a"), b(folder + "/b");
    child owner = start({"owner"}, outside_mps);
    const int memory = descriptor_of(owner);
    child v = start({"victim", endless ? "0" : "1000000000"}, a.folder, memory);
    cudaIpcEventHandle_t handle{};
    const bool recorded =
        is_readable(v.socket, 20'000) && ::read(v.socket, &handle, sizeof handle) == sizeof handle;
    child pollers[2] = {start({"poller", seconds, "polls"}, b.folder, memory),
                        start({"poller", seconds, "waits"}, b.folder, memory)};
    bool ready = memory >= 0 && recorded;
    for (child& p : pollers) {
        char byte = 0;
        ready = ::write(p.socket, &handle, sizeof handle) == sizeof handle && ready;
        ready = is_readable(p.socket, 20'000) && ::read(p.socket, &byte, 1) == 1 && ready;
    }
    std::string killed;
    for (child& p : pollers) (void)::write(p.socket, "g", 1);
    if (what == "kill") ::kill(v.pid, SIGKILL);
    if (what == "exit") (void)::write(v.socket, "x", 1);
    if (what == "fault") (void)::write(v.socket, "f", 1);
    if (what == "terminate") {
        killed = a.command("echo terminate_client " + std::to_string(a.server()) + " " +
                           std::to_string(v.pid) + " | " + control);
        while (!killed.empty() && killed.back() == '\n') killed.pop_back();
        killed = "answer " + killed;
        ::kill(v.pid, SIGKILL);
    }
    if (what == "server" || what == "daemon") {
        const int pid = what == "server" ? a.server() : a.daemon();
        killed = domain::name_of(pid);
        ::kill(pid, SIGKILL);
    }
    if (what == "domain") killed = end_domain(a, v, owner);
    const std::string polls = line_of(pollers[0], 20'000);
    const auto first = counters_of(owner);
    const std::string waits = line_of(pollers[1], 20'000);
    ::usleep(100'000);
    const auto second = counters_of(owner);
    std::printf("%-10s %-8s %-28s %-28s %-14s %-8s %s%s\n", what.c_str(), endless ? "endless" : "1 s",
                polls.c_str(), waits.c_str(), second.second != 0 ? "ran to its end" : "aborted",
                first.first != second.first ? "writes" : "quiet", killed.c_str(),
                ready ? "" : " (NOT READY)");
    std::fflush(stdout);
    for (child* c : {&v, &pollers[0], &pollers[1], &owner}) end(*c);
    ::close(memory);
    const bool aborted_complete = polls.rfind("complete", 0) == 0 && second.second == 0;
    const bool harmed =
        polls.find("healthy") == std::string::npos || waits.find("healthy") == std::string::npos;
    const bool fenced = killed.rfind("NOT FENCED", 0) != 0;
    return ready && !harmed && fenced && (!aborted_complete || what == "terminate");
}

}  // namespace

int main(int argc, char** argv) {
    const std::string role = argc > 1 ? argv[1] : "";
    if (role == "owner") return memory_owner();
    if (role == "victim" && argc > 2) return victim(std::strtoull(argv[2], nullptr, 10));
    if (role == "poller" && argc > 3) return poller(std::atof(argv[2]), std::strcmp(argv[3], "waits") == 0);
    if (std::system("command -v nvidia-cuda-mps-control > /dev/null") != 0)
        return std::puts("skipped: there is no nvidia-cuda-mps-control in PATH"), skipped;
    if (!has_gpu()) return std::puts("skipped: CUDA finds no GPU here"), skipped;
    std::signal(SIGPIPE, SIG_IGN);
    char folder[] = "/tmp/mps-domains-XXXXXX";
    if (::mkdtemp(folder) == nullptr) return std::perror("making a folder below /tmp"), 1;
    const std::string seconds = role.empty() ? "3" : role;
    std::printf("%-10s %-8s %-28s %-28s %-14s %-8s\n", "in A", "kernel", "an event polled in B",
                "a stream of B waits", "the kernel", "after it");
    bool good = true;
    int number = 0;
    for (const char* what : {"nothing", "kill", "exit", "fault", "terminate", "server", "daemon", "domain"})
        for (const bool endless : {false, true}) {
            if (endless && std::strcmp(what, "nothing") == 0) continue;
            const std::string place = std::string(folder) + "/" + std::to_string(number++);
            ::mkdir(place.c_str(), 0700);
            good = one_case(place, what, endless, seconds) && good;
        }
    (void)std::system((std::string("rm -rf ") + folder).c_str());
    return good ? 0 : 1;
}
