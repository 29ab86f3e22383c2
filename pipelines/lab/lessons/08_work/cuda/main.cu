// Distributes tasks to the kernels of four processes, first with a shared index that all processes increment,
// then with a work queue of a space; the results are in a block of the space's GPU memory. Two of the
// processes are killed in the middle of a task. Finally submits a task that kills every process that takes
// it. The parent never touches CUDA. Usage: carousel-lab-work-cuda SPACE (the name given to `carousel hold
// NAME --device cuda:0`)
#include <unistd.h>

#include <atomic>
#include <carousel/ipc_cuda.cuh>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_of;
using lesson::now_us;
using view = carousel::ipc::work_queue_view<unsigned>;
constexpr unsigned tasks = 200, workers = 4, killed = 2, threads = 8, poisoned = 13;
std::string space;

struct shared : lesson::record {
    std::atomic<int> ready;
    std::atomic<carousel::u64> results;  // offset of the results in the space
};
shared* common;

/// Counters in GPU memory: how often each task was done, and how many tasks were retried after a death.
struct board {
    unsigned next, again, times[tasks];
};

void figure(const std::string& name, double value) { lesson::figure(("cuda." + name).c_str(), value); }
bool wait_for(const std::atomic<int>& word, int value) { return lesson::wait_for(word, value, 15'000); }
void well(cudaError_t e, const char* what) {
    if (e != cudaSuccess) throw carousel::device_error(std::string(what) + ": " + cudaGetErrorString(e));
}
unsigned* number_for_kernels() {
    unsigned* at = nullptr;
    well(cudaMallocManaged(&at, sizeof *at), "cudaMallocManaged");
    *at = 0;
    return at;
}
template <class Body>
pid_t start(Body body) {
    return lesson::start([&] { return lesson::exit_code_of<carousel::error>(body); });
}

__device__ unsigned long long clock_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
__device__ void work_for(unsigned long long ns) {
    const auto end = clock_ns() + ns;
    while (clock_ns() < end) __nanosleep(1000);
}
/// Each thread takes one task, either with the shared index or from the work queue. `ns`: duration of a task.
__global__ void run(view queue, board* b, bool held, unsigned long long ns, unsigned* taken) {
    unsigned k = tasks;
    carousel::ipc::claimed_task claim;
    if (held ? !queue.try_claim(k, claim) : (k = atomicAdd_system(&b->next, 1)) >= tasks) return;
    atomicAdd(taken, 1);
    work_for(ns);
    if (held && !queue.commit(claim)) return;
    atomicAdd_system(&b->times[k], 1);
    if (held && claim.attempts > 0) atomicAdd_system(&b->again, 1);
}
__global__ void submit(view queue, unsigned count, unsigned first, unsigned* done) {
    while (*done < count && queue.try_submit(first + *done)) ++*done;
}
__global__ void claim_one(view queue, unsigned* taken) {
    unsigned k = 0;
    carousel::ipc::claimed_task claim;
    *taken += queue.try_claim(k, claim);
}
/// The process is killed while its kernel works on the tasks.
int die() {
    (void)cudaStreamQuery(nullptr);
    usleep(100'000);
    return kill(getpid(), SIGKILL);
}

/// Submits the tasks, waits until all tasks are done (or the parent reports that no worker is left), and
/// counts how often each was done.
int master(bool held) {
    carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
    const auto queue = gpu.work_queue<unsigned>("tasks", 512, 3);
    auto results = gpu.pool("results", 1 << 20);
    const auto block = results.acquire(sizeof(board), std::chrono::seconds(5));
    common->results = block.offset();
    void* const at = block.data().data();
    well(cudaMemset(at, 0, sizeof(board)), "cudaMemset of a block");
    unsigned* done = number_for_kernels();
    if (held) submit<<<1, 1>>>(queue.device(), tasks, 0, done);
    well(cudaDeviceSynchronize(), "the master's kernel");
    ++common->ready;
    if (!wait_for(common->ready, workers + 1)) return 1;
    const double begin = now_us();
    board seen{};
    unsigned missing = tasks;
    while (missing > 0 && common->step == 0 && now_us() < begin + 10e6) {
        usleep(1000);
        well(cudaMemcpy(&seen, at, sizeof seen, cudaMemcpyDeviceToHost), "reading the results");
        missing = 0;
        for (const unsigned t : seen.times) missing += t == 0;
    }
    common->step = 1;
    unsigned once = 0;
    for (const unsigned t : seen.times) once += t == 1;
    const std::string name = held ? "held." : "naive.";
    figure(name + "missing", missing), figure(name + "once", once), figure(name + "again", seen.again);
    figure(name + "ms", (now_us() - begin) / 1e3);
    return 0;
}
/// The first `killed` workers are killed in the middle of the tasks of their second kernel.
int worker(unsigned number, bool held) {
    carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
    const auto queue = gpu.work_queue<unsigned>("tasks", 512, 3);
    unsigned* taken = number_for_kernels();
    if (!wait_for(common->ready, 1)) return 1;  // wait until the master has made its block
    auto* const b = reinterpret_cast<board*>(gpu.at(common->results, sizeof(board)));
    ++common->ready;
    if (!wait_for(common->ready, workers + 1)) return 1;
    for (unsigned before = 0; common->step == 0; before = *taken) {
        run<<<1, threads>>>(queue.device(), b, held, 300'000, taken);
        well(cudaDeviceSynchronize(), "a worker's kernel");
        if (number < killed) {
            run<<<1, threads>>>(queue.device(), b, held, 5'000'000'000, taken);
            return die();
        }
        if (*taken == before && !held) return 0;
        if (*taken == before) usleep(1000);
    }
    return 0;
}
void half_of_the_workers_killed(bool held) {
    common->ready = common->step = 0;
    const pid_t first = start([=] { return master(held); });
    pid_t pids[workers];
    for (unsigned w = 0; w < workers; ++w) pids[w] = start([=] { return worker(w, held); });
    unsigned deaths = 0;
    for (const pid_t pid : pids) deaths += end_of(pid) < 0;
    if (!held) usleep(50'000), common->step = 1;
    (void)end_of(first);
    figure(held ? "held.killed" : "naive.killed", deaths);
}

/// A task that kills every process that takes it.
void poison() {
    common->step = 0;
    const pid_t first = start([] {
        carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
        const auto queue = gpu.work_queue<unsigned>("poison", 16, 3);
        submit<<<1, 1>>>(queue.device(), 1, poisoned, number_for_kernels());
        well(cudaDeviceSynchronize(), "the master's kernel");
        for (const double end = now_us() + 15e6; queue.state().dead_letters == 0 && now_us() < end;)
            usleep(1000);
        figure("poison.dead_letters", queue.state().dead_letters);
        common->step = 1;
        return 0;
    });
    unsigned deaths = 0;
    for (const double end = now_us() + 20e6; common->step == 0 && now_us() < end;)
        deaths += end_of(start([] {
                      carousel::ipc::gpu_space gpu(carousel::ipc::open(space));
                      const auto queue = gpu.work_queue<unsigned>("poison", 16, 3);
                      for (unsigned* taken = number_for_kernels(); common->step == 0; usleep(1000)) {
                          claim_one<<<1, 1>>>(queue.device(), taken);
                          well(cudaDeviceSynchronize(), "a worker's kernel");
                          if (*taken > 0) return kill(getpid(), SIGKILL);
                      }
                      return 0;
                  })) == -1;
    (void)end_of(first);
    figure("poison.deaths", deaths);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-work-cuda SPACE")) return 2;
    space = argc > 1 ? argv[1] : "lab";
    common = lesson::make_record<shared>();
    const int code = end_of(start([] {
        const carousel::ipc::gpu_space gpu(carousel::ipc::open(space));  // needs GPU memory
        return 0;
    }));
    if (code != 0) return code > 0 ? code : 3;
    half_of_the_workers_killed(false);
    half_of_the_workers_killed(true);
    poison();
    std::fputs(common->output, stdout);
    return 0;
}
