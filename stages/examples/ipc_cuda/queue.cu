// Passes samples from the kernels of any process to those of any other one: kernel_queue push|pop NUMBER
#include <carousel/ipc_cuda.cuh>

#include <cstdio>
#include <cstdlib>
#include <string>

struct sample {
    unsigned long long number;
    double value;
};
struct counters {
    unsigned long long done;
    double sum;
};

// A single thread pushes all samples, so that they keep their order.
__global__ void push(carousel::ipc::queue_view<sample> queue, counters* c, unsigned long long number) {
    for (int turn = 0; turn < 64 && c->done < number; ++turn, ++c->done)
        if (!queue.push({c->done, c->done / 2.0}, 10'000'000)) return;  // waits at most 10 ms for room
}

// Many threads run this, and each pops one sample.
__global__ void pop(carousel::ipc::queue_view<sample> queue, counters* c, unsigned long long number) {
    sample s;
    carousel::ipc::queue_lease lease;
    if (c->done + threadIdx.x >= number || !queue.lease(s, lease, 10'000'000)) return;
    atomicAdd(&c->sum, s.value);
    queue.commit(lease);  // if this process dies before the commit, another one gets the sample
    atomicAdd(&c->done, 1ULL);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const bool pushes = std::string(argv[1]) == "push";
    const unsigned long long number = std::strtoull(argv[2], nullptr, 10);
    try {
        carousel::ipc::gpu_space gpu(carousel::ipc::open("lab"));
        auto samples = gpu.queue<sample>("samples on the GPU", 256);
        counters* c = nullptr;
        if (cudaMallocManaged(&c, sizeof *c) != cudaSuccess) return 3;
        for (*c = {}; c->done < number;) {
            pushes ? push<<<1, 1>>>(samples.device(), c, number)
                   : pop<<<1, 64>>>(samples.device(), c, number);
            if (cudaDeviceSynchronize() != cudaSuccess) return 3;
        }
        std::printf("%llu samples, sum %.1f\n", c->done, c->sum);
        return 0;
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
