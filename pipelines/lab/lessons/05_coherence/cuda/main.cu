// Tests for each kind of load whether a polling kernel sees another process's writes, tests data that is
// followed by a flag, and measures the time of a hop between two spinning kernels in time slices and under
// MPS. The parent never touches CUDA. The MPS daemon is private to this lesson, has its own folder, and ends
// with the lesson.
#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_mps_daemon;
using lesson::end_within;
using lesson::now_us;
using lesson::start;
using lesson::start_mps_daemon;

// The timeouts of all waits add up to 86 s, which is below the lesson's limit of 90 s. A normal run takes
// about ten seconds.
constexpr int both_ms = 13'000;
constexpr unsigned line = 32, data_words = 64;  // distance between independent words; number of words per
                                                // message
enum { plain, as_volatile, relaxed, acquire, kinds };
const char* const names[kinds] = {"plain", "volatile", "relaxed", "acquire"};

struct shared {
    std::atomic<int> step;
    cudaIpcMemHandle_t handle;
    int observed[kinds];
    double hop_us;
    unsigned torn;
    char why[200];
};
shared* common;
std::string folder;  // folder of the MPS daemon's pipes; no process replies at these pipes while no daemon
                     // runs

bool wait_for(int step) { return lesson::wait_for(common->step, step, 8'000); }
bool begin_cuda() { return lesson::begin_cuda(common->why); }

__device__ unsigned long long now_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
__device__ unsigned load_relaxed(const unsigned* at) {
    unsigned v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at));
    return v;
}
__device__ unsigned load_acquire(const unsigned* at) {
    unsigned v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}
__device__ void store_relaxed(unsigned* at, unsigned v) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(v));
}
__device__ void store_release(unsigned* at, unsigned v) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

/// Polls for at most one second. *saw: 1 if it saw the write.
template <int kind>
__global__ void poll(const unsigned* at, unsigned* saw) {
    const unsigned long long end = now_ns() + 1'000'000'000ULL;
    unsigned v = 0;
    do {
        if (kind == plain) v = *at;
        if (kind == as_volatile) v = *static_cast<const volatile unsigned*>(at);
        if (kind == relaxed) v = load_relaxed(at);
        if (kind == acquire) v = load_acquire(at);
    } while (v == 0 && now_ns() < end);
    *saw = v != 0;
}
__global__ void write_word(unsigned* at) { store_release(at, 1); }

/// One of two kernels that exchange messages: a kernel writes the data, then the flag. Ends after 6 s in any
/// case.
__global__ void messages(unsigned* memory, unsigned number, bool first, bool ordered, unsigned* torn) {
    unsigned *flag = memory, *back = memory + line, *data = memory + 2 * line;
    const unsigned long long end = now_ns() + 6'000'000'000ULL;
    for (unsigned k = 1; k <= number; ++k) {
        if (first) {
            for (unsigned w = 0; w < data_words; ++w) data[w] = k;
            ordered ? store_release(flag, k) : store_relaxed(flag, k);
            while (load_acquire(back) != k)
                if (now_ns() > end) return;
            continue;
        }
        while ((ordered ? load_acquire(flag) : load_relaxed(flag)) != k)
            if (now_ns() > end) return;
        bool whole = true;
        for (unsigned w = 0; w < data_words; ++w) whole = data[w] == k && whole;
        torn[0] += !whole, torn[1] = k;
        store_release(back, k);
    }
}

/// Creates the memory, and writes to it when the reader is ready.
int writer(unsigned number, bool ordered) {
    unsigned *memory = nullptr, *unused = nullptr;
    if (!begin_cuda() || cudaMalloc(&memory, 2 << 20) != cudaSuccess ||
        cudaMalloc(&unused, 8) != cudaSuccess || cudaMemset(memory, 0, 2 << 20) != cudaSuccess ||
        cudaIpcGetMemHandle(&common->handle, memory) != cudaSuccess)
        return 1;
    write_word<<<1, 1>>>(memory + 7 * line);  // load the modules
    messages<<<1, 1>>>(memory, 0, true, ordered, unused);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    common->step = 1;
    for (int kind = 0; number == 0 && kind < kinds; ++kind) {
        if (!wait_for(2 + 2 * kind)) return 1;
        usleep(200'000);  // the reader is polling by now
        write_word<<<1, 1>>>(memory + (8 + kind) * line);
        if (cudaDeviceSynchronize() != cudaSuccess || !wait_for(3 + 2 * kind)) return 1;
    }
    if (number == 0) return 0;
    if (!wait_for(2)) return 1;
    messages<<<1, 1>>>(memory, number, true, ordered, unused);
    const bool well = cudaDeviceSynchronize() == cudaSuccess;
    return well && wait_for(3) ? 0 : 1;
}
template <int kind>
void poll_as(unsigned* memory, unsigned* saw) {
    unsigned seen = 2;
    poll<kind><<<1, 1>>>(memory + 7 * line, saw);  // loads the module; the kernel ends at once because this
                                                   // word is already set
    cudaDeviceSynchronize();
    common->step = 2 + 2 * kind;
    poll<kind><<<1, 1>>>(memory + (8 + kind) * line, saw);
    cudaMemcpy(&seen, saw, sizeof seen, cudaMemcpyDeviceToHost);
    common->observed[kind] = static_cast<int>(seen);
    common->step = 3 + 2 * kind;
}
int reader(unsigned number, bool ordered) {
    void* opened = nullptr;
    unsigned *torn = nullptr, found[2] = {};
    if (!wait_for(1) || !begin_cuda() ||
        cudaIpcOpenMemHandle(&opened, common->handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess ||
        cudaMalloc(&torn, 8) != cudaSuccess || cudaMemset(torn, 0, 8) != cudaSuccess)
        return 1;
    unsigned* const memory = static_cast<unsigned*>(opened);
    if (number == 0) {
        poll_as<plain>(memory, torn), poll_as<as_volatile>(memory, torn);
        poll_as<relaxed>(memory, torn), poll_as<acquire>(memory, torn);
        return 0;
    }
    messages<<<1, 1>>>(memory, 0, false, ordered, torn);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    common->step = 2;
    const double begin = now_us();
    messages<<<1, 1>>>(memory, number, false, ordered, torn);
    const bool well = cudaMemcpy(found, torn, sizeof found, cudaMemcpyDeviceToHost) == cudaSuccess;
    common->hop_us = (now_us() - begin) / 2 / number;
    common->torn = found[0];
    common->step = 3;
    return well && found[1] == number ? 0 : 1;
}
/// Runs both processes concurrently; returns false if one of them failed or timed out.
bool both(unsigned number, bool ordered) {
    common->step = 0;
    const pid_t a = start([&] { return writer(number, ordered); }),
                b = start([&] { return reader(number, ordered); });
    const bool well = end_within(b, both_ms) == 0;
    return end_within(a, well ? 1'000 : 0) == 0 && well;
}
void figure(const std::string& name, double value) { std::printf("figure %s %.6g\n", name.c_str(), value); }

void under_mps() {
    constexpr unsigned number = 2000;
    const pid_t daemon = start_mps_daemon(folder);
    if (daemon < 0) {
        std::printf("missing mps no MPS daemon could be started here (nvidia-cuda-mps-control)\n");
        return;
    }
    if (both(number, true)) {
        figure("cuda.mps.hop_us", common->hop_us), figure("cuda.acquire.torn", common->torn);
        figure("cuda.tries", number);
        if (both(number, false)) figure("cuda.relaxed.torn", common->torn);
    } else {
        std::printf("missing mps the MPS daemon runs, and no client could work under it: %s\n", common->why);
    }
    end_mps_daemon(daemon);
}
bool in_time_slices() {
    if (!both(0, false)) return false;
    for (int kind = 0; kind < kinds; ++kind)
        figure(std::string("cuda.") + names[kind] + ".sees", common->observed[kind]);
    if (!both(50, true)) return false;
    figure("cuda.slices.hop_us", common->hop_us);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-coherence-cuda")) return 2;
    char pattern[] = "/tmp/carousel-lesson-XXXXXX";
    if (mkdtemp(pattern) == nullptr) return 1;
    common = lesson::shared_memory<shared>();
    folder = pattern;
    setenv("CUDA_MPS_PIPE_DIRECTORY", pattern, 1), setenv("CUDA_MPS_LOG_DIRECTORY", pattern, 1);
    int code = end_within(start([] { return begin_cuda() ? 0 : 3; }), 8'000) == 0 ? 0 : 3;
    if (code == 3)
        (void)lesson::no_gpu(common->why);
    else
        code = in_time_slices() ? 0 : 1;
    if (code == 0) under_mps();
    std::error_code gone;
    std::filesystem::remove_all(folder, gone);
    return code;
}
