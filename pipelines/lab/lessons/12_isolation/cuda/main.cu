// Measures the cost of isolation on a GPU: the time of a hop from a kernel of one process to a kernel of
// another, in time slices and under MPS, compared with a hop within one process. Also shows in each case what
// effect the fault of a neighbour has. The parent never touches CUDA. The MPS daemon is private to this
// lesson, has its own folder, and ends with the lesson.
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_mps_daemon;
using lesson::end_within;
using lesson::now_us;
using lesson::start;
using lesson::start_mps_daemon;

// The timeouts of all waits add up to 83 s, which is below the lesson's limit of 90 s. A normal run takes
// about five seconds.
constexpr unsigned hops = 300;
constexpr int start_ms = 8'000;  // limit for the start-up of a process

struct shared {
    std::atomic<unsigned> turn, ready, stop;
    double hop_us, stall_ms, context_mib;
    int code, faulty;
    char why[200];
};
shared* common;
std::string folder;  // folder of the MPS daemon's pipes; no process replies at these pipes while no daemon
                     // runs

bool begin_cuda() { return lesson::begin_cuda(common->why); }

__global__ void tiny(unsigned* at) { ++*at; }
__global__ void faulty_store(unsigned* at) { *at = 1; }

double median(std::vector<double> all) {
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}
/// Alternates between two streams of one process.
int one_process() {
    unsigned* at = nullptr;
    cudaStream_t streams[2];
    if (!begin_cuda() || cudaMalloc(&at, 4) != cudaSuccess) return 1;
    for (cudaStream_t& s : streams) cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    std::vector<double> each;
    for (unsigned k = 0; k < hops; ++k) {
        const double begin = now_us();
        tiny<<<1, 1, 0, streams[k % 2]>>>(at);
        if (cudaStreamSynchronize(streams[k % 2]) != cudaSuccess) return 1;
        each.push_back(now_us() - begin);
    }
    common->hop_us = median(each);
    return 0;
}
/// One of two processes that take turns: launches a kernel in each of its turns.
int take_turns(unsigned number) {
    unsigned* at = nullptr;
    if (!begin_cuda() || cudaMalloc(&at, 4) != cudaSuccess) return 1;
    tiny<<<1, 1>>>(at);  // load the module
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    ++common->ready;
    for (const double end = now_us() + 1e3 * start_ms; common->ready < 2; usleep(100))
        if (now_us() > end) return 1;
    std::vector<double> each;
    double last = now_us();
    for (unsigned k = 0; k < hops; ++k) {
        for (const double end = now_us() + 2e6; common->turn % 2 != number;)
            if (now_us() > end) return 1;
        tiny<<<1, 1>>>(at);
        if (cudaStreamSynchronize(nullptr) != cudaSuccess) return 1;
        ++common->turn;
        const double now = now_us();
        each.push_back((now - last) / 2), last = now;
    }
    if (number == 0) common->hop_us = median(each);
    return 0;
}
void figure(const std::string& name, double value) { std::printf("figure %s %.6g\n", name.c_str(), value); }

double hop_between_processes() {
    common->turn = common->ready = 0, common->hop_us = 0;
    const pid_t a = start([] { return take_turns(0); }), b = start([] { return take_turns(1); });
    const bool well = end_within(a, start_ms + 2'000) == 0;
    return end_within(b, 1'000) == 0 && well ? common->hop_us : 0;
}

/// A neighbour that works continuously and records its longest stall and its first error.
int neighbour() {
    unsigned* at = nullptr;
    size_t before = 0, with = 0, all = 0;
    if (!begin_cuda() || cudaMalloc(&at, 4) != cudaSuccess || cudaMemGetInfo(&before, &all) != cudaSuccess)
        return 1;
    common->ready = 1;
    double last = now_us();
    for (bool measured = false; common->stop == 0 && common->code == 0; last = now_us()) {
        tiny<<<1, 1>>>(at);
        common->code = cudaStreamSynchronize(nullptr);
        if (common->ready < 3) continue;
        if (!measured) {
            cudaMemGetInfo(&with, &all);
            common->context_mib = (static_cast<double>(before) - static_cast<double>(with)) / (1 << 20);
            common->ready = 4, measured = true;
            continue;
        }
        common->stall_ms = std::max(common->stall_ms, (now_us() - last) / 1000);
    }
    _exit(0);
}
/// The faulty process: one of its own kernels faults.
int faulty() {
    unsigned* at = nullptr;
    if (!begin_cuda() || cudaMalloc(&at, 4) != cudaSuccess) return 1;
    tiny<<<1, 1>>>(at);
    cudaDeviceSynchronize();
    common->ready = 3;
    for (const double end = now_us() + 3e6; common->ready < 4 && now_us() < end;) usleep(100);
    usleep(50'000);
    faulty_store<<<1, 1>>>(nullptr);
    common->faulty = cudaDeviceSynchronize();
    _exit(0);
}
void fault(const std::string& mode) {
    common->ready = common->stop = 0, common->code = common->faulty = 0, common->stall_ms = 0;
    const pid_t neighbour_pid = start(neighbour);
    for (int k = 0; k < start_ms / 2 && common->ready == 0; ++k) usleep(1000);
    (void)end_within(start(faulty), start_ms / 2);
    usleep(700'000);
    common->stop = 1;
    (void)end_within(neighbour_pid, 2'000);
    figure("cuda." + mode + ".code", common->code), figure("cuda." + mode + ".faulty", common->faulty);
    figure("cuda." + mode + ".stall_ms", common->stall_ms);
    if (mode == "slices") figure("cuda.context.mib", common->context_mib);
}

void under_mps(double one_us) {
    const pid_t daemon = start_mps_daemon(folder);
    if (daemon < 0) {
        std::printf("missing mps no MPS daemon could be started here (nvidia-cuda-mps-control)\n");
        return;
    }
    const double us = hop_between_processes();
    if (us > 0) {
        figure("cuda.mps.hop_us", us), figure("cuda.mps.ratio", us / one_us);
        fault("mps");
    } else {
        std::printf("missing mps the MPS daemon runs, and no client could work under it: %s\n", common->why);
    }
    end_mps_daemon(daemon);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-isolation-cuda")) return 2;
    char pattern[] = "/tmp/carousel-lesson-XXXXXX";
    if (mkdtemp(pattern) == nullptr) return 1;
    common = lesson::shared_memory<shared>();
    folder = pattern;
    setenv("CUDA_MPS_PIPE_DIRECTORY", pattern, 1), setenv("CUDA_MPS_LOG_DIRECTORY", pattern, 1);
    int code = end_within(start([] { return begin_cuda() ? 0 : 3; }), start_ms) == 0 ? 0 : 3;
    if (code == 3)
        (void)lesson::no_gpu(common->why);
    else if (end_within(start(one_process), start_ms) != 0)
        code = 1;
    if (code == 0) {
        const double one_us = common->hop_us, slices_us = hop_between_processes();
        figure("cuda.one.hop_us", one_us), figure("cuda.slices.hop_us", slices_us);
        figure("cuda.slices.ratio", slices_us / one_us);
        std::fflush(stdout);  // the figures so far are printed whatever happens next
        fault("slices");
        under_mps(one_us);
    }
    std::error_code gone;
    std::filesystem::remove_all(folder, gone);
    return code;
}
