// Two independently started CUDA programs on one node share only the path of a file. Runs them in three
// orders: the consumer starts first, the producer starts first, or the consumer starts after the producer has
// ended. This program executes itself in either role; no parent process has touched CUDA.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "../../program.hpp"

namespace {

using lesson::end_of;

constexpr unsigned magic = 0x5EED5EED;
constexpr int no_gpu = 3, no_file = 4, no_memory = 5, not_whole = 6;

double now_ms() { return lesson::now_us() / 1e3; }
bool begin_cuda() { return cudaSetDevice(0) == cudaSuccess && cudaFree(nullptr) == cudaSuccess; }

/// Writes the handle into a file with a temporary name and renames the file; then waits to be killed
/// (`stays`) or returns.
int produce(const std::string& file, bool stays) {
    void* at = nullptr;
    cudaIpcMemHandle_t h;
    if (!begin_cuda()) return no_gpu;
    if (cudaMalloc(&at, 2 << 20) != cudaSuccess ||
        cudaMemcpy(at, &magic, sizeof magic, cudaMemcpyHostToDevice) != cudaSuccess ||
        cudaIpcGetMemHandle(&h, at) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return no_memory;
    FILE* out = std::fopen((file + ".part").c_str(), "wb");
    if (out == nullptr || std::fwrite(&h, sizeof h, 1, out) != 1 || std::fclose(out) != 0 ||
        std::rename((file + ".part").c_str(), file.c_str()) != 0)
        return no_file;
    while (stays) pause();
    return 0;
}
/// Waits at most five seconds for the file, opens the handle and reads. Returns 0 if the data was correct,
/// else an error code; if CUDA refuses the handle, prints CUDA's error code.
int consume(const std::string& file) {
    FILE* in = nullptr;
    for (const double end = now_ms() + 5000; in == nullptr && now_ms() < end;)
        if ((in = std::fopen(file.c_str(), "rb")) == nullptr) usleep(1000);
    cudaIpcMemHandle_t h{};
    if (in == nullptr || std::fread(&h, sizeof h, 1, in) != 1) return no_file;
    std::fclose(in);
    if (!begin_cuda()) return no_gpu;
    void* at = nullptr;
    const cudaError_t e = cudaIpcOpenMemHandle(&at, h, cudaIpcMemLazyEnablePeerAccess);
    if (e != cudaSuccess) return std::printf("figure stale.open %d\n", e), no_memory;
    unsigned word = 0;
    cudaMemcpy(&word, at, sizeof word, cudaMemcpyDeviceToHost);
    return word == magic ? 0 : not_whole;
}

/// Executes this program in another role.
pid_t start(const char* self, const char* as, const std::string& file) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
        execl("/proc/self/exe", self, as, file.c_str(), nullptr);
        _exit(127);
    }
    return pid;
}

void apart(const char* self, const char* name, const std::string& file, bool consumer_first) {
    const double begin = now_ms();
    pid_t producer = 0, consumer = 0;
    if (consumer_first) consumer = start(self, "--consume", file), usleep(300'000);
    producer = start(self, "--produce", file);
    if (!consumer_first) usleep(300'000), consumer = start(self, "--consume", file);
    const int code = end_of(consumer);
    kill(producer, SIGKILL);
    (void)end_of(producer);
    std::printf("figure cuda.%s.code %d\nfigure cuda.%s.ms %.0f\n", name, code, name, now_ms() - begin);
    unlink(file.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    const std::string as = argc > 2 ? argv[1] : "";
    if (as == "--produce" || as == "--hand-over") return produce(argv[2], as == "--produce");
    if (as == "--consume") return consume(argv[2]);
    if (lesson::wants_usage(argc, argv, "carousel-lab-order-cuda")) return 2;
    const std::string file = "/tmp/carousel-lesson-" + std::to_string(getpid());
    const int first = end_of(start(argv[0], "--hand-over", file));
    if (first != 0) {
        std::fprintf(stderr, first == no_gpu ? "no GPU: a process that asked for one got none\n"
                                             : "a producer could not export memory\n");
        return first == no_gpu ? 3 : 1;
    }
    // The producer has exited normally after writing the file, which is intact.
    const int code = end_of(start(argv[0], "--consume", file));
    std::printf("figure cuda.ended.code %d\n", code);
    unlink(file.c_str());
    apart(argv[0], "consumer_first", file, true);
    apart(argv[0], "producer_first", file, false);
    return 0;
}
