// <carousel/ipc_cuda.cuh> in one process and its child: what each call returns, and what it refuses.
//
//   ipc_gpu_checks     `carousel` is searched next to it, or in CAROUSEL_PROGRAMS
//
// Exit code 0: all held; 1: one line per failed check; 77: no GPU.
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "ipc/cuda/carousel/ipc_cuda.cuh"

extern char** environ;

using namespace carousel::ipc;
using carousel::u32;
using carousel::u64;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

int failed = 0;

void is(bool held, const char* what) {
    if (held) return;
    ++failed;
    std::printf("NOT SO: %s\n", what);
}
void cuda_is_well(const char* where) {
    is(cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess, where);
}

template <class Fn>
void refuses(Fn fn, const char* words) {
    try {
        fn();
    } catch (const std::exception& e) {
        if (std::string(e.what()).find(words) != std::string::npos) return;
        std::printf("it said: %s\n", e.what());
    }
    is(false, words);
}

template <class T>
T* shared_with_kernels() {
    T* at = nullptr;
    if (cudaMallocManaged(&at, sizeof(T)) != cudaSuccess) std::exit(77);
    *at = {};
    return at;
}

struct found {
    u32 n[16];
};

__global__ void use_queue(queue_view<u64> q, found* f) {
    u64 v = 0;
    queue_lease l;
    f->n[0] = q.try_pop(v);  // empty
    u64 in[10];
    for (u32 k = 0; k < 10; ++k) in[k] = 100 + k;
    f->n[1] = q.try_push(in, 10);  // 8 fit
    f->n[2] = q.try_pop(v) && v == 100;
    f->n[3] = q.try_lease(v, l) && v == 101;
    f->n[4] = q.requeue(l) && !q.commit(l);
    f->n[5] = q.try_lease(v, l) && v == 101 && q.commit(l) && !q.commit(l);
    u64 out[10];
    f->n[6] = q.try_pop(out, 10) == 6 && out[0] == 102 && out[5] == 107;
    const u64 before = detail::gpu_clock_ns();
    f->n[7] = q.pop(v, 2'000'000);
    f->n[8] = detail::gpu_clock_ns() - before >= 1'000'000;
}

__global__ void use_work(work_queue_view<u64> w, found* f) {
    u64 v = 0;
    claimed_task c;
    f->n[0] = w.try_claim(v, c);
    f->n[1] = w.try_submit(7) && w.try_claim(v, c) && v == 7 && c.attempts == 0 && w.fail(c) && !w.commit(c);
    f->n[2] = w.try_claim(v, c) && c.attempts == 1 && w.fail(c);  // the last of two
    f->n[3] = w.try_claim(v, c);
    f->n[4] = w.take_dead_letter(v) && v == 7 && !w.take_dead_letter(v);
    u32 room = 0;
    while (w.try_submit(room)) ++room;
    f->n[5] = room == w.capacity();
    while (w.try_claim(v, c)) w.commit(c);
}

__global__ void fill(u32* at, u32 words, u32 value) {
    for (u32 k = threadIdx.x; k < words; k += blockDim.x) at[k] = value + k;
}
__global__ void note(permit_view p, found* f, u32 k) { f->n[k] = p.granted(); }

void queue_and_work(gpu_space& gpu) {
    auto* f = shared_with_kernels<found>();
    auto q = gpu.queue<u64>("queue", 8);
    use_queue<<<1, 1>>>(q.device(), f);
    cuda_is_well("a kernel that uses a queue");
    is(f->n[0] == 0, "an empty queue gives nothing");
    is(f->n[1] == 8, "as many are pushed as there is room for");
    is(f->n[2] && f->n[3], "elements come in their order");
    is(f->n[4] != 0, "what is given back can't be committed");
    is(f->n[5] != 0, "it comes again, and is committed once");
    is(f->n[6] != 0, "several at once");
    is(f->n[7] == 0 && f->n[8] != 0, "a wait comes to its end");
    const gpu_queue_state s = q.state();
    is(s.waiting + s.claimed + s.taken == 0 && s.lost + s.tombs == 0 && s.holders.empty(),
       "it is empty behind that");
    auto w = gpu.work_queue<u64>("work", 4, 2);
    use_work<<<1, 1>>>(w.device(), f);
    cuda_is_well("a kernel that uses a work queue");
    is(f->n[0] == 0 && f->n[3] == 0, "without a task nothing is claimed");
    is(f->n[1] && f->n[2], "a task that fails waits again, with an attempt more");
    is(f->n[4] != 0, "a dead letter is read once");
    is(f->n[5] != 0, "room for as many as it has");
    refuses([&] { (void)gpu.queue<u32>("queue", 8); },
            "exists as a queue on the GPU of 8 elements of 8 bytes");
    refuses([&] { (void)gpu.queue<double>("queue", 8); }, "use the same struct in all programs");
    refuses([&] { (void)gpu.work_queue<double>("work", 4, 2); }, "another type than requested");
    refuses([&] { (void)gpu.work_queue<u64>("many", 8, 16); }, "1 to 15 attempts");
}

/// In a child: the passed block is mapped at another address, or the same, with its contents.
int child(const char* name) {
    space lab = open(name);
    gpu_space gpu(lab);
    auto travels = lab.block_queue<u32>("travels", 4, gpu.pool("pages", 1 << 20));
    const auto got = travels.receive(seconds(20));
    auto* f = shared_with_kernels<u32>();
    (void)f;
    u32 words[2] = {};
    if (cudaMemcpy(words, got.block.data().data(), sizeof words, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 2;
    return got.about == 5 && words[0] == 77 && words[1] == 78 &&
                   gpu.offset_of(got.block.data().data()) == got.block.offset()
               ? 0
               : 1;
}

void pools(const std::string& name, space& lab, gpu_space& gpu) {
    auto pool = gpu.pool("pages", 1 << 20);
    auto block = pool.acquire(100'000, seconds(1));
    is(block.data().size() == 131072, "a block has whole units");
    fill<<<1, 32>>>(reinterpret_cast<u32*>(block.data().data()), 1000, 77);
    cuda_is_well("a kernel that writes a block");
    is(gpu.at(block.offset(), block.data().size()) == block.data().data(), "an offset is that pointer here");
    refuses([&] { (void)gpu.at(gpu.bytes() - 4, 8); }, "is not within the");
    int mine = 0;
    refuses([&] { (void)gpu.offset_of(&mine); }, "is invalid in another process");
    refuses([&] { (void)pool.acquire(2 << 20, seconds(1)); }, "does not fit into a pool of");
    auto travels = lab.block_queue<u32>("travels", 4, pool);
    travels.send(std::move(block), 5, seconds(1));
    pid_t pid = 0;
    std::string self = "/proc/self/exe", role = "child", n = name;
    char* argv[] = {self.data(), role.data(), n.data(), nullptr};
    int status = 1;
    is(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ) == 0 &&
           ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "a block of GPU memory goes to another process, whole");
    is(pool.state().travelling == 0, "and is nobody's behind its end");
}

void permits(space& lab, gpu_space& gpu) {
    auto* f = shared_with_kernels<found>();
    auto turn = gpu.semaphore("turn", 1);
    auto by_hand = lab.semaphore("turn", 1);
    cudaStream_t a = nullptr, b = nullptr;
    (void)cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    (void)cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    auto held = std::make_unique<held_permit>(by_hand.acquire(seconds(1)));
    auto late = turn.acquire(a, milliseconds(30));
    note<<<1, 1, 0, a>>>(late.device(), f, 0);
    is(cudaStreamSynchronize(a) == cudaSuccess && f->n[0] == 0 && late.now() == permit_now::expired,
       "a stream goes on when its time is over, without a permit");
    auto waits = turn.acquire(b, seconds(20));
    note<<<1, 1, 0, b>>>(waits.device(), f, 1);
    is(waits.now() == permit_now::pending, "it waits for whoever has it");
    held.reset();
    is(cudaStreamSynchronize(b) == cudaSuccess && f->n[1] == 1 && waits.now() == permit_now::granted,
       "and has it when that one gives it back");
    is(by_hand.free() == 0, "a stream's permit is out");
    waits.release(b);
    is(cudaStreamSynchronize(b) == cudaSuccess && by_hand.free() == 1, "and comes back in stream order");
    {
        auto dropped = turn.acquire(a, seconds(20));
        is(cudaStreamSynchronize(a) == cudaSuccess && by_hand.free() == 0, "it has it");
    }
    is(by_hand.free() == 1, "who lets go of a permit gives it back");
    refuses([&] { (void)turn.acquire(a, nanoseconds(0)); }, "needs a timeout");
    refuses([&] { (void)turn.acquire(a, std::chrono::hours(100)); }, "at most an hour");
    (void)cudaStreamDestroy(a), (void)cudaStreamDestroy(b);
}

pid_t hold(const std::string& name) {
    const char* where = std::getenv("CAROUSEL_PROGRAMS");
    std::string program =
        (where != nullptr ? std::string(where)
                          : std::filesystem::read_symlink("/proc/self/exe").parent_path().string()) +
        "/carousel";
    std::string words[] = {program, "hold", name, "--device", "cuda:0", "--device-size", "8M"};
    char* argv[8] = {};
    for (int k = 0; k < 7; ++k) argv[k] = words[k].data();
    pid_t pid = 0;
    return ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv, environ) == 0 ? pid : -1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 3 && std::string(argv[1]) == "child") return child(argv[2]);
        int gpus = 0;
        if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0)
            return std::puts("skipped: CUDA finds no GPU here"), 77;
        const std::string name = "checks-" + std::to_string(::getpid());
        const pid_t holder = hold(name);
        {
            space lab = open(name, {.wait_s = 30});
            gpu_space gpu(lab);
            refuses([&] { gpu_space second(lab); }, "is already mapped in this process");
            queue_and_work(gpu);
            pools(name, lab, gpu);
            permits(lab, gpu);
        }
        ::kill(holder, SIGINT);
        int status = 0;
        is(::waitpid(holder, &status, 0) == holder && WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "the holder ends well");
    } catch (const std::exception& e) {
        is(false, e.what());
    }
    std::puts(failed == 0 ? "all checks held" : "some checks did not hold");
    return failed == 0 ? 0 : 1;
}
