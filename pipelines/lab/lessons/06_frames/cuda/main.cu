// A ring of frames in GPU memory with status words that identify their owner. The producer is killed in the
// middle of a kernel; the buffer is polled until it no longer changes, and is reused only after that. The
// parent never touches CUDA. It repairs the words, and uses a pidfd of the producer as the fence.
#include <cuda_runtime.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_of;
using lesson::figure;
using lesson::now_us;
using lesson::start;
using lesson::wait_for;

constexpr unsigned slots = 4, words = 1 << 18, frames = 20, dies_in = 10;
enum : uint64_t { empty, writing, ready };

struct shared : lesson::record {
    std::atomic<uint64_t> word[slots];  // state, epoch and frame
    std::atomic<double> killed_us, fence_us, again_us;
    cudaIpcMemHandle_t handle;
};
shared* common;

uint64_t word_of(uint64_t state, unsigned epoch, unsigned frame) {
    return state | uint64_t{epoch} << 8 | uint64_t{frame} << 32;
}
uint64_t state_of(uint64_t word) { return word & 0xFF; }

bool wait_for(const std::atomic<uint64_t>& word, uint64_t state) {
    for (int k = 0; k < 200'000 && state_of(word.load()) != state; ++k) usleep(50);
    return state_of(word.load()) == state;
}
bool begin_cuda() { return lesson::begin_cuda(common->why); }

__global__ void write_frame(unsigned* at, unsigned frame) {
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        at[k] = frame;
}
/// Writes a frame for several seconds: increments the first word continuously, for a limited time.
__global__ void write_slowly(unsigned* at, unsigned long long nanoseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        *static_cast<volatile unsigned*>(at) = *static_cast<volatile unsigned*>(at) + 1;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
__global__ void count_wrong(const unsigned* at, unsigned frame, unsigned* wrong) {
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < words; k += gridDim.x * blockDim.x)
        if (at[k] != frame) atomicAdd(wrong, 1U);
}

/// Writes the frames, beginning with number `from`, and claims each with this epoch.
int producer(unsigned epoch, unsigned from) {
    void* memory = nullptr;
    if (!wait_for(1) || !begin_cuda() ||
        cudaIpcOpenMemHandle(&memory, common->handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess)
        return 1;
    for (unsigned frame = from; frame < frames; ++frame) {
        std::atomic<uint64_t>& word = common->word[frame % slots];
        unsigned* const at = static_cast<unsigned*>(memory) + size_t{frame % slots} * words;
        if (!wait_for(word, empty)) return 2;
        uint64_t was = word.load();
        const uint64_t mine = word_of(writing, epoch, frame);
        if (!word.compare_exchange_strong(was, mine)) return 3;
        if (epoch == 1 && frame == dies_in) {
            write_slowly<<<1, 1>>>(at, 8'000'000'000ULL);
            (void)cudaStreamQuery(nullptr);
            usleep(200'000);
            common->step = 2;
            for (;;) pause();  // the kill
        }
        write_frame<<<64, 256>>>(at, frame);
        if (cudaDeviceSynchronize() != cudaSuccess) return 4;
        was = mine;
        if (!word.compare_exchange_strong(was, word_of(ready, epoch, frame))) return 5;
        if (epoch == 2 && frame == from) common->again_us = now_us();
    }
    return 0;
}

/// Polls the dead producer's buffer until 200 ms after the fence.
void watch(const unsigned* at) {
    unsigned seen = 0;
    const auto check_once = [&] {
        return cudaMemcpy(&seen, at, sizeof seen, cudaMemcpyDeviceToHost) == cudaSuccess;
    };
    unsigned last = (check_once(), seen), after_fence = 0;
    double changed_us = 0;
    common->step = 3;  // the parent may kill the producer now
    for (double end = now_us() + 10e6; now_us() < end;) {
        const double fence_us = common->fence_us.load();  // the fence time is read first, so the poll below
                                                          // happens after the fence
        if (!check_once()) break;
        if (seen != last) changed_us = now_us(), last = seen, after_fence += fence_us > 0;
        if (fence_us > 0 && now_us() > fence_us + 200'000) break;
    }
    const double killed_us = common->killed_us.load();
    figure("cuda.late.ms", changed_us > killed_us ? (changed_us - killed_us) / 1000 : 0);
    figure("cuda.late.after_fence", after_fence);
    figure("cuda.fence.ms", (common->fence_us.load() - killed_us) / 1000);
    common->step = 4;
}
/// Owns the memory and reads every frame.
int consumer() {
    if (!begin_cuda()) return 3;
    unsigned *memory = nullptr, *wrong = nullptr, total = 0, got = 0;
    if (cudaMalloc(&memory, size_t{slots} * words * 4) != cudaSuccess ||
        cudaMalloc(&wrong, 4) != cudaSuccess ||
        cudaMemset(memory, 0, size_t{slots} * words * 4) != cudaSuccess ||
        cudaMemset(wrong, 0, 4) != cudaSuccess ||
        cudaIpcGetMemHandle(&common->handle, memory) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return 1;
    common->step = 1;
    for (unsigned frame = 0; frame < frames; ++frame, ++got) {
        std::atomic<uint64_t>& word = common->word[frame % slots];
        const unsigned* const at = memory + size_t{frame % slots} * words;
        if (frame == dies_in) {
            if (!wait_for(2)) break;
            watch(at);
        }
        if (!wait_for(word, ready)) break;
        total += word.load() >> 32 != frame;
        count_wrong<<<64, 256>>>(at, frame, wrong);
        if (cudaDeviceSynchronize() != cudaSuccess) break;
        word.store(empty);
    }
    unsigned words_wrong = 1;
    cudaMemcpy(&words_wrong, wrong, sizeof words_wrong, cudaMemcpyDeviceToHost);
    figure("cuda.frames.got", got), figure("cuda.frames.wrong", total + words_wrong);
    return got == frames ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-frames-cuda")) return 2;
    common = lesson::make_record<shared>();
    if (end_of(start([] { return begin_cuda() ? 0 : 3; })) != 0) return lesson::no_gpu(common->why);
    const pid_t reader = start(consumer), writer = start([] { return producer(1, 0); });
    const bool watched = wait_for(3);
    pollfd fence{static_cast<int>(syscall(SYS_pidfd_open, writer, 0)), POLLIN, 0};
    common->killed_us = now_us();
    kill(writer, SIGKILL);
    (void)poll(&fence, 1, 10'000);
    common->fence_us = now_us();
    (void)end_of(writer);
    // The repair: the slot that epoch 1 was writing becomes empty again, and the next process starts with
    // this slot.
    for (std::atomic<uint64_t>& word : common->word) {
        uint64_t was = word.load();
        if (state_of(was) == writing) word.compare_exchange_strong(was, empty);
    }
    bool well = watched && wait_for(4);  // unlike this example, a real ring continues at once with a spare
                                         // buffer
    const double begin = now_us();
    if (well) well = end_of(start([] { return producer(2, dies_in); })) == 0;
    figure("cuda.again.ms", (common->again_us.load() - begin) / 1000);
    if (!well) kill(reader, SIGKILL);
    well = end_of(reader) == 0 && well;
    std::fputs(common->output, stdout);
    return well ? 0 : 1;
}
