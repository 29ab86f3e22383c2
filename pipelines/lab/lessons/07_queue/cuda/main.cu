// A queue that kernels of one process fill and kernels of another process drain: first a ring whose cells are
// claimed by an index, then a queue of a space. Processes are killed while their kernels push and pop. The
// parent never touches CUDA. Usage: carousel-lab-queue-cuda SPACE (the name given to `carousel hold NAME
// --device cuda:0`)
#include <unistd.h>

#include <atomic>
#include <carousel/ipc_cuda.cuh>
#include <csignal>
#include <cstdio>
#include <string>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_of;
using lesson::figure;
using lesson::now_us;
using view = carousel::ipc::queue_view<unsigned>;
constexpr unsigned number = 20'000, marked = 1'000'000'000;
std::string space;

struct shared : lesson::record {
    std::atomic<int> ready;
    std::atomic<double> died_us;
    cudaIpcMemHandle_t ring;
};
shared* common;

bool wait_for(const std::atomic<int>& word, int value) { return lesson::wait_for(word, value, 15'000); }
void well(cudaError_t e, const char* what) {
    if (e != cudaSuccess) throw carousel::device_error(std::string(what) + ": " + cudaGetErrorString(e));
}
template <class T>
T* shared_with_kernels() {
    T* at = nullptr;
    well(cudaMallocManaged(&at, sizeof(T)), "cudaMallocManaged");
    return new (at) T{};
}
template <class Body>
pid_t start(Body body) {
    return lesson::start([&] { return lesson::exit_code_of<carousel::error>(body); });
}
/// The process is killed while the launched kernel runs.
int die() {
    (void)cudaStreamQuery(nullptr);
    usleep(200'000);
    common->died_us = now_us();
    return kill(getpid(), SIGKILL);
}

__device__ unsigned long long clock_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
/// As in the textbooks: claim a cell, write, set its flag; the consumer takes the cells in order.
struct naive {
    unsigned tail, head;
    struct {
        unsigned full, value;
    } cells[64];
};
__device__ void spin(unsigned long long ns) {
    const auto end = clock_ns() + ns;
    while (clock_ns() < end) __nanosleep(1000);
}
__global__ void naive_push(naive* q, unsigned count, unsigned long long before_ns) {
    for (unsigned k = 0; k < count; ++k) {
        auto& cell = q->cells[atomicAdd_system(&q->tail, 1)];
        spin(before_ns);  // the process is killed here
        cell.value = k;
        __threadfence_system();
        atomicExch_system(&cell.full, 1);
    }
}
__global__ void naive_pop(naive* q, unsigned* got) {
    const auto end = clock_ns() + 100'000'000;
    while (clock_ns() < end && *got < 10)
        if (atomicAdd_system(&q->cells[q->head].full, 0) != 0) ++q->head, ++*got;
}
naive* opened_ring() {
    void* at = nullptr;
    well(cudaIpcOpenMemHandle(&at, common->ring, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    return static_cast<naive*>(at);
}
void naive_ring() {
    const pid_t consumer = start([] {
        naive *q = nullptr, seen{};
        auto* got = shared_with_kernels<unsigned>();
        well(cudaMalloc(&q, sizeof *q), "cudaMalloc"), well(cudaMemset(q, 0, sizeof *q), "cudaMemset");
        well(cudaDeviceSynchronize(), "cudaMemset");
        well(cudaIpcGetMemHandle(&common->ring, q), "cudaIpcGetMemHandle");
        common->step = 1;
        if (!wait_for(common->step, 2)) return 1;
        naive_pop<<<1, 1>>>(q, got);
        well(cudaMemcpy(&seen, q, sizeof seen, cudaMemcpyDeviceToHost), "a ring in GPU memory");
        figure("cuda.naive.claimed", seen.tail), figure("cuda.naive.got", *got);
        return 0;
    });
    if (wait_for(common->step, 1)) {
        (void)end_of(start([] {
            naive_push<<<1, 1>>>(opened_ring(), 1, 5'000'000'000);
            return die();
        }));
        (void)end_of(start([] {
            naive_push<<<1, 1>>>(opened_ring(), 10, 0);
            return static_cast<int>(cudaDeviceSynchronize());
        }));
    }
    common->step = 2;
    (void)end_of(consumer);
}

/// A single thread pushes until the queue is full, so that its elements stay in order.
__global__ void push_some(view q, unsigned producer, unsigned* next) {
    while (*next < number && q.try_push(*next * 2 + producer)) ++*next;
}
struct counts {
    unsigned got, wrong, next[2];
};
__global__ void pop_some(view q, counts* c) {
    for (unsigned v; q.try_pop(v); ++c->got) c->wrong += v / 2 != c->next[v % 2]++;
}
/// The kernels of two producers and one consumer.
void held() {
    pid_t producers[2];
    for (unsigned p = 0; p < 2; ++p)
        producers[p] = start([p] {
            carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
            const auto samples = gpu.queue<unsigned>("samples", 4096);
            auto* next = shared_with_kernels<unsigned>();
            ++common->ready;
            if (!wait_for(common->ready, 3)) return 1;
            for (const double end = now_us() + 10e6; *next < number && now_us() < end;) {
                push_some<<<1, 1>>>(samples.device(), p, next);
                well(cudaDeviceSynchronize(), "a producer's kernel");
            }
            return 0;
        });
    const pid_t consumer = start([] {
        carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
        const auto samples = gpu.queue<unsigned>("samples", 4096);
        auto* c = shared_with_kernels<counts>();
        ++common->ready;
        if (!wait_for(common->ready, 3)) return 1;
        const double begin = now_us();
        while (c->got < 2 * number && now_us() < begin + 10e6) {
            pop_some<<<1, 1>>>(samples.device(), c);
            well(cudaDeviceSynchronize(), "the consumer's kernel");
        }
        figure("cuda.held.got", c->got), figure("cuda.held.wrong", c->wrong);
        figure("cuda.held.ns", (now_us() - begin) * 1e3 / (2 * number));
        return 0;
    });
    for (const pid_t pid : {producers[0], producers[1], consumer}) (void)end_of(pid);
}

/// Thousands of threads push and pop continuously; the process is killed meanwhile.
__global__ void churn(view q) {
    const auto end = clock_ns() + 5'000'000'000;
    for (unsigned v; clock_ns() < end;) (void)q.try_push(1), (void)q.try_pop(v);
}
__global__ void push_marked(view q, unsigned* pushed) {
    while (*pushed < 10 && q.try_push(marked + *pushed)) ++*pushed;
}
/// Counts the marked elements that arrive in order; all other elements belong to the dead process.
__global__ void pop_marked(view q, unsigned* got) {
    for (unsigned v; q.try_pop(v);) *got += v == marked + *got;
}
void killed_in_mid_kernel() {
    const pid_t survivor = start([] {
        carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
        const auto storm = gpu.queue<unsigned>("storm", 1024);
        auto *pushed = shared_with_kernels<unsigned>(), *got = shared_with_kernels<unsigned>();
        common->step = 3;
        if (!wait_for(common->step, 4)) return 1;
        while (*got < 10 && now_us() < common->died_us + 10e6) {
            push_marked<<<1, 1>>>(storm.device(), pushed), pop_marked<<<1, 1>>>(storm.device(), got);
            well(cudaDeviceSynchronize(), "a kernel after the death");
        }
        figure("cuda.storm.got", *got), figure("cuda.storm.ms", (now_us() - common->died_us) / 1e3);
        const auto state = storm.state();
        figure("cuda.storm.tombs", static_cast<double>(state.tombs));
        figure("cuda.storm.lost", static_cast<double>(state.lost));
        figure("cuda.storm.left", state.waiting + state.claimed + state.taken);
        return 0;
    });
    if (wait_for(common->step, 3))
        (void)end_of(start([] {
            carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
            churn<<<32, 128>>>(gpu.queue<unsigned>("storm", 1024).device());
            return die();
        }));
    common->step = 4;
    (void)end_of(survivor);
}

__global__ void push_one(view q, unsigned value, unsigned* done) { *done = q.try_push(value); }
__global__ void pop_one(view q, unsigned* value) {
    if (unsigned v; q.try_pop(v)) *value = v;
}
__global__ void lease_one(view q, unsigned* value) {
    carousel::ipc::queue_lease lease;
    if (unsigned v; q.try_lease(v, lease)) *value = v;
}
/// Starts a process whose kernel takes an element; then the process dies.
void dies_after(void (*take)(view, unsigned*)) {
    (void)end_of(start([take] {
        carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
        take<<<1, 1>>>(gpu.queue<unsigned>("leased", 16).device(), shared_with_kernels<unsigned>());
        well(cudaDeviceSynchronize(), "a consumer's kernel");
        return die();
    }));
}
void dead_consumers() {
    const pid_t producer = start([] {
        carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
        const auto leased = gpu.queue<unsigned>("leased", 16);
        auto* value = shared_with_kernels<unsigned>();
        for (const unsigned v : {1U, 2U}) {
            push_one<<<1, 1>>>(leased.device(), v, value);
            well(cudaDeviceSynchronize(), "the producer's kernel");
            common->step = 3 + 2 * static_cast<int>(v);  // steps 5 and 7
            if (!wait_for(common->step, 4 + 2 * static_cast<int>(v))) return 1;
        }
        for (*value = 0; *value == 0 && now_us() < common->died_us + 10e6;) {
            pop_one<<<1, 1>>>(leased.device(), value);
            well(cudaDeviceSynchronize(), "a kernel after the death");
        }
        figure("cuda.leased.again", *value), figure("cuda.leased.ms", (now_us() - common->died_us) / 1e3);
        figure("cuda.popped.lost", static_cast<double>(leased.state().lost));
        return 0;
    });
    if (wait_for(common->step, 5)) dies_after(pop_one);
    common->step = 6;
    if (wait_for(common->step, 7)) dies_after(lease_one);
    common->step = 8;
    (void)end_of(producer);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-queue-cuda SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    common = lesson::make_record<shared>();
    const int code = end_of(start([] {
        const carousel::ipc::gpu_space gpu(carousel::ipc::open(space));  // needs GPU memory
        return 0;
    }));
    if (code != 0) return code > 0 ? code : 3;
    naive_ring();
    held();
    killed_in_mid_kernel();
    dead_consumers();
    std::fputs(common->output, stdout);
    return 0;
}
