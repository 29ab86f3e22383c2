// The cost of a frame of some launches, for the host that enqueues it and for the GPU: the measurement behind
// "Arguments" in device/same_work.hpp.
//
//   graph_cost [LAUNCHES [FRAMES]]      [9 2000]
//
//   launched     one by one
//   nodes        a graph, the arguments that differ set in its nodes (the tree's own same_work); here all
//   differ descriptor   a graph that is never touched: the host writes the frame's arguments into pinned
//   memory, the
//                first node brings them to GPU memory, and every kernel reads them there
//
// Host us: from the first call to the last. GPU us: between two events, everything enqueued before it begins.
// Medians. Exit code 77: there is no GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "core/errors.hpp"
#include "device/cuda/launch.hpp"
#include "device/same_work.hpp"

namespace {

using namespace carousel;

constexpr int skipped = 77, hold_us = 400;
constexpr u32 blocks = 64, threads = 256;

struct numbers {
    u32* out;
    u64 add;
};
__global__ void by_value(const __grid_constant__ numbers n) {
    n.out[blockIdx.x * blockDim.x + threadIdx.x] += static_cast<u32>(n.add);
}
__global__ void by_descriptor(const numbers* n) {
    n->out[blockIdx.x * blockDim.x + threadIdx.x] += static_cast<u32>(n->add);
}
__global__ void hold(unsigned long long us) {
    unsigned long long now = 0, until = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(until));
    until += us * 1000;
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now < until);
}

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

f64 median(std::vector<f64> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

void measure(const char* name, u32 frames, cudaStream_t stream, const std::function<void(u64)>& frame) {
    cudaEvent_t began{}, ended{};
    check(cudaEventCreate(&began));
    check(cudaEventCreate(&ended));
    std::vector<f64> host, gpu;
    for (u32 k = 0; k < frames; ++k) {
        hold<<<1, 1, 0, stream>>>(hold_us);
        check(cudaEventRecord(began, stream));
        const auto from = std::chrono::steady_clock::now();
        frame(k);
        host.push_back(
            std::chrono::duration<f64, std::micro>(std::chrono::steady_clock::now() - from).count());
        check(cudaEventRecord(ended, stream));
        check(cudaStreamSynchronize(stream));
        f32 ms = 0;
        check(cudaEventElapsedTime(&ms, began, ended));
        gpu.push_back(ms * 1e3);
    }
    std::printf("%-11s host %6.2f us, GPU %6.2f us a frame\n", name, median(host), median(gpu));
    check(cudaEventDestroy(began));
    check(cudaEventDestroy(ended));
}

struct bench {
    u32 launches, frames;
    std::unique_ptr<device::context> context = device::open({device::device_kind::cuda, "", 0});
    std::unique_ptr<device::queue> queue = context->make_queue();
    std::unique_ptr<device::mapping> memory = context->allocate(u64{blocks} * threads * sizeof(u32));
    cudaStream_t stream = static_cast<cudaStream_t>(queue->native_stream());
    u32* out = reinterpret_cast<u32*>(memory->data());

    void launch_all(u64 number) {
        for (u32 k = 0; k < launches; ++k)
            check(device::cuda::launch(*queue, "by_value", by_value, blocks, threads, 0, false,
                                       numbers{out, number + k}));
    }

    void with_descriptor() {
        const auto given = context->allocate_host(launches * sizeof(numbers));
        const auto there = context->allocate(launches * sizeof(numbers));
        auto* const host = reinterpret_cast<numbers*>(given->host_data());
        auto* const at = reinterpret_cast<const numbers*>(there->data());
        cudaGraph_t graph{};
        cudaGraphExec_t exec{};
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        check(cudaMemcpyAsync(there->data(), host, launches * sizeof(numbers), cudaMemcpyDefault, stream));
        for (u32 k = 0; k < launches; ++k) by_descriptor<<<blocks, threads, 0, stream>>>(at + k);
        check(cudaStreamEndCapture(stream, &graph));
        check(cudaGraphInstantiate(&exec, graph, 0));
        measure("descriptor", frames, stream, [&](u64 number) {
            for (u32 k = 0; k < launches; ++k) host[k] = {out, number + k};
            check(cudaGraphLaunch(exec, stream));
        });
        check(cudaGraphExecDestroy(exec));
        check(cudaGraphDestroy(graph));
    }

    void run() {
        measure("launched", frames, stream, [&](u64 number) { launch_all(number); });
        const auto work = device::make_same_work(*queue);
        measure("nodes", frames, stream, [&](u64 number) {
            work->begin();
            launch_all(number);
            work->end();
        });
        with_descriptor();
    }
};

}  // namespace

int main(int argc, char** argv) {
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        std::puts("there is no GPU");
        return skipped;
    }
    try {
        bench b{argc > 1 ? static_cast<u32>(std::atoi(argv[1])) : 9,
                argc > 2 ? static_cast<u32>(std::atoi(argv[2])) : 2000};
        b.run();
    } catch (const error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
