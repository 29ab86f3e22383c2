// When does a process that was ended stop writing to GPU memory? The measurement that justifies the fence of
// isolation = "process" and "mps".
//
//   mps_fence process|mps ROUNDS
//
// A keeper process (a CUDA client that is never harmed) owns a row of counters and shares them by IPC handle;
// a victim fills its queue with kernels of 1 ms, each of which adds to every counter for as long as it runs.
// The victim is ended; at the sign that is used as its fence the keeper reads the counters, and again 300 ms
// later: they must be the same. Ways of ending it:
//   kill       SIGKILL; the sign is the pidfd
//   terminate  (mps) terminate_client, SIGKILL; the sign is the command's return and the pidfd
// "mps" starts its own daemon in a new folder and ends it. This process never touches CUDA. Exit code 0: no
// write after the sign of `terminate` and, without MPS, of `kill`; writes after a kill under MPS are reported
// without a verdict.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu/cuda/mps_children.hpp"

namespace {

using namespace carousel::test;

constexpr int counters = 1024;
using words = std::vector<unsigned>;

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

__global__ void add_for(unsigned* at, unsigned long long ns) {
    unsigned long long now = 0, until = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(until));
    until += ns;
    do {
        atomicAdd(at + blockIdx.x * blockDim.x + threadIdx.x, 1U);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now < until);
}

int victim(const char* hex) {
    cudaIpcMemHandle_t handle;
    for (unsigned k = 0; k < sizeof handle; ++k)
        std::sscanf(hex + 2 * k, "%2hhx", reinterpret_cast<unsigned char*>(&handle) + k);
    void* at = nullptr;
    if (cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) return 3;
    for (int k = 0; k < 400; ++k) add_for<<<counters / 128, 128>>>(static_cast<unsigned*>(at), 1'000'000);
    if (::write(result_fd, "r", 1) != 1) return 4;
    for (int k = 0; k < 4000; ++k) add_for<<<counters / 128, 128>>>(static_cast<unsigned*>(at), 1'000'000);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 5;
}

// Answers each byte with the counters.
int memory_owner() {
    unsigned* at = nullptr;
    cudaIpcMemHandle_t handle;
    cudaStream_t stream;
    if (cudaMalloc(&at, sizeof(unsigned) * counters) != cudaSuccess ||
        cudaIpcGetMemHandle(&handle, at) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        return 3;
    char hex[2 * sizeof handle + 1];
    for (unsigned k = 0; k < sizeof handle; ++k)
        std::snprintf(hex + 2 * k, 3, "%02x", reinterpret_cast<unsigned char*>(&handle)[k]);
    if (::write(result_fd, hex, 2 * sizeof handle) != static_cast<ssize_t>(2 * sizeof handle)) return 4;
    words now(counters);
    for (char asked; ::read(result_fd, &asked, 1) == 1;) {
        if (cudaMemcpyAsync(now.data(), at, sizeof(unsigned) * counters, cudaMemcpyDeviceToHost, stream) !=
                cudaSuccess ||
            cudaStreamSynchronize(stream) != cudaSuccess)
            return 5;
        if (::write(result_fd, now.data(), sizeof(unsigned) * counters) < 0) return 4;
    }
    return 0;
}

bool read_all(int fd, void* to, size_t bytes) {
    for (size_t got = 0; got < bytes;) {
        const ssize_t n = ::read(fd, static_cast<char*>(to) + got, bytes - got);
        if (n <= 0) return false;
        got += static_cast<size_t>(n);
    }
    return true;
}

bool read_words(const child& k, words& now) {
    now.resize(counters);
    return ::write(k.socket, "?", 1) == 1 && read_all(k.socket, now.data(), sizeof(unsigned) * counters);
}

std::string command(const std::string& text) {
    std::string output;
    FILE* p = ::popen(("echo '" + text + "' | timeout 5 nvidia-cuda-mps-control").c_str(), "r");
    for (int c; p != nullptr && (c = std::fgetc(p)) != EOF;) output += static_cast<char>(c);
    if (p != nullptr) ::pclose(p);
    return output;
}

struct tally {
    int rounds = 0, failed = 0, written = 0;
    std::vector<double> fence_ms;
};

// One round with its own keeper, because under MPS a victim may take it along.
void round(const std::string& domain, bool terminate, tally& t) {
    child k = start({"memory_owner"}, domain);
    std::string hex(2 * sizeof(cudaIpcMemHandle_t), 0);
    bool ok = read_all(k.socket, hex.data(), hex.size());
    child v = start({"victim", hex}, domain);
    char ready = 0;
    ok = ok && read_all(v.socket, &ready, 1);
    ::usleep(20'000);
    words first, second;
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, v.pid, 0));
    const double began = now_ms();
    if (ok && terminate)
        ok = command("terminate_client " + std::to_string(std::atoi(command("get_server_list").c_str())) +
                     " " + std::to_string(v.pid)) == "0\n";
    ::kill(v.pid, SIGKILL);
    pollfd p{pidfd, POLLIN, 0};
    ok = ::poll(&p, 1, 10'000) == 1 && ok;
    const double fence = now_ms() - began;
    ok = ok && read_words(k, first);
    ::usleep(300'000);
    ok = ok && read_words(k, second) && first[0] != 0;
    ++t.rounds;
    t.failed += ok ? 0 : 1;
    t.written += ok && first != second ? 1 : 0;
    if (ok) t.fence_ms.push_back(fence);
    ::close(pidfd);
    for (const child& c : {v, k}) end(c);
}

void print_tally(const char* way, tally& t) {
    std::sort(t.fence_ms.begin(), t.fence_ms.end());
    const auto at = [&](double q) {
        return t.fence_ms.empty()
                   ? 0.0
                   : t.fence_ms[static_cast<size_t>(q * static_cast<double>(t.fence_ms.size() - 1))];
    };
    std::printf(
        "%-10s %3d rounds, %d wrote behind the sign, %d could not be read; sign after %.1f / %.1f ms (p50 / "
        "max)\n",
        way, t.rounds, t.written, t.failed, at(0.5), at(1));
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "victim" && argc > 2) return victim(argv[2]);
    if (what == "memory_owner") return memory_owner();
    if (what != "process" && what != "mps") return std::fprintf(stderr, "mps_fence process|mps ROUNDS\n"), 2;
    if (what == "mps" && std::system("command -v nvidia-cuda-mps-control > /dev/null") != 0)
        return std::puts("skipped: there is no nvidia-cuda-mps-control in PATH"), skipped;
    char folder[] = "/tmp/mps-fence-XXXXXX";
    if (what == "mps" && ::mkdtemp(folder) == nullptr) return std::perror("making a folder below /tmp"), 1;
    const std::string domain = what == "mps" ? folder : outside_mps;
    ::setenv("CUDA_MPS_PIPE_DIRECTORY", domain.c_str(), 1);
    ::setenv("CUDA_MPS_LOG_DIRECTORY", folder, 1);
    if (!has_gpu()) return std::puts("skipped: CUDA finds no GPU here"), ::rmdir(folder), skipped;
    if (what == "mps" && std::system("nvidia-cuda-mps-control -d") != 0)
        return std::fputs("the MPS daemon does not start\n", stderr), 1;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
    std::signal(SIGPIPE, SIG_IGN);
    tally kill, terminate;
    for (int k = 0; what == "mps" && k < rounds; ++k) round(domain, true, terminate);
    if (what == "mps") print_tally("terminate", terminate);
    for (int k = 0; k < rounds; ++k) round(domain, false, kill);
    print_tally("kill", kill);
    if (what == "mps") {
        (void)command("quit -t 2");
        (void)std::system((std::string("rm -rf ") + folder).c_str());
    }
    const bool good =
        what == "mps" ? terminate.written + terminate.failed == 0 : kill.written + kill.failed == 0;
    return good ? 0 : 1;
}
