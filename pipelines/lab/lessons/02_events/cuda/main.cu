// CUDA events between processes: an event that was never recorded, the textbook's flag that is set too early,
// a recorder that is killed, and a word in GPU memory that a stream waits on. The parent never touches CUDA.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_of;
using lesson::figure;
using lesson::now_us;
using lesson::start;
using lesson::wait_for;

constexpr size_t words = 1 << 20;
constexpr unsigned magic = 0x5EED5EED;

struct shared : lesson::record {
    std::atomic<int> released;
    // The textbook's two programs set these; the producer is killed when `opened` is set.
    std::atomic<int> ready, opened;
    std::atomic<double> at_us;
    cudaIpcEventHandle_t event;
    cudaIpcMemHandle_t data, word;
};
shared* common;

bool begin_cuda() { return lesson::begin_cuda(common->why); }
using wait_value = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
wait_value stream_wait_value() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    return library == nullptr ? nullptr
                              : reinterpret_cast<wait_value>(dlsym(library, "cuStreamWaitValue32_v2"));
}

__global__ void work(unsigned* data, size_t number, long long nanoseconds) {
    if (threadIdx.x == 0) {  // stands for earlier work on the stream, with a bounded duration
        unsigned long long begin, now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
        do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        while (static_cast<long long>(now - begin) < nanoseconds);
    }
    __syncthreads();
    for (size_t k = threadIdx.x; k < number; k += blockDim.x) data[k] = 0x5EED5EED;
}

int producer() {
    if (!begin_cuda()) return 3;
    unsigned *data = nullptr, *word = nullptr;
    cudaEvent_t event;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess);
    cudaMalloc(&data, words * 4), cudaMalloc(&word, 2 << 20);
    cudaMemset(data, 0, words * 4), cudaMemset(word, 0, 4);
    cudaDeviceSynchronize();
    cudaIpcGetEventHandle(&common->event, event);
    cudaIpcGetMemHandle(&common->data, data), cudaIpcGetMemHandle(&common->word, word);
    common->step = 1;  // the textbook's `ready`: the handles exist, but no event is recorded yet
    if (!wait_for(2)) return 1;
    work<<<1, 256, 0, stream>>>(data, words, 100'000'000);
    cudaEventRecord(event, stream);
    cudaStreamSynchronize(stream);
    common->step = 3;  // the first frame is complete
    if (!wait_for(4)) return 1;
    // this kernel would take 8 s, but the process is killed earlier
    work<<<1, 256, 0, stream>>>(data, words, 8'000'000'000);
    cudaEventRecord(event, stream);
    (void)cudaStreamQuery(stream);
    usleep(100'000);
    common->step = 5;
    for (;;) pause();  // the kill
}

struct imported {
    cudaEvent_t event = nullptr;
    void *data = nullptr, *word = nullptr;
    bool there = false;
};
imported import() {
    imported i;
    i.there = begin_cuda() && cudaIpcOpenEventHandle(&i.event, common->event) == cudaSuccess &&
              cudaIpcOpenMemHandle(&i.data, common->data, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess &&
              cudaIpcOpenMemHandle(&i.word, common->word, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess;
    return i;
}

/// The textbook's consumer: waits for `ready`, makes its stream wait for the event, and reads.
int consumer() {
    if (!wait_for(1)) return 1;
    imported i = import();
    cudaStream_t stream;
    if (!i.there || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
    figure("cuda.unrecorded.code", cudaEventQuery(i.event));
    unsigned last = 0;
    cudaStreamWaitEvent(stream, i.event, 0);
    cudaMemcpyAsync(&last, static_cast<unsigned*>(i.data) + words - 1, 4, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    figure("cuda.early.whole", last == magic);
    common->step = 2;
    if (!wait_for(3)) return 1;
    cudaStreamWaitEvent(stream, i.event, 0);
    cudaMemcpyAsync(&last, static_cast<unsigned*>(i.data) + words - 1, 4, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    figure("cuda.late.whole", last == magic);
    common->step = 4;
    if (!wait_for(6)) return 1;  // the recorder is dead
    int code = cudaErrorNotReady;
    for (int k = 0; k < 1000 && code == cudaErrorNotReady; ++k) usleep(1000), code = cudaEventQuery(i.event);
    figure("cuda.dead.code", code);
    // this process opened the word before the exporter was killed; a process that starts later could not open
    // it
    const unsigned one = 1;
    common->at_us = now_us();
    cudaMemcpyAsync(i.word, &one, sizeof one, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    common->step = 7;
    _exit(0);  // a normal exit would wait for the driver
}

/// A process whose stream waits for the event of the dead recorder. The process is killed if the wait does
/// not end.
int hanging() {
    if (!wait_for(5)) return 1;
    imported i = import();
    cudaStream_t stream;
    if (!i.there || cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
    cudaStreamWaitEvent(stream, i.event, 0);
    cudaStreamSynchronize(stream);
    common->released = 1;
    _exit(0);
}

/// A process whose stream waits for a word; another process writes the word instead of the dead process.
int saved() {
    if (!wait_for(5)) return 1;
    imported i = import();
    cudaStream_t stream;
    const wait_value wait = stream_wait_value();
    if (!i.there || wait == nullptr ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        return 1;
    const bool waits =
        wait(stream, reinterpret_cast<CUdeviceptr>(i.word), 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS;
    if (!waits) return 2;
    cudaStreamSynchronize(stream);
    figure("cuda.word.us", now_us() - common->at_us.load());
    _exit(0);
}
/// Runs the textbook's two programs unchanged. The producer is killed after it sets `ready` and before it
/// enqueues its work and records the event.
int textbook_producer() {
    unsigned* data = nullptr;
    cudaEvent_t event;
    cudaStream_t stream;
    if (!begin_cuda() || cudaMalloc(&data, words * 4) != cudaSuccess) return 3;
    cudaMemset(data, 0, words * 4);
    cudaDeviceSynchronize();
    cudaStreamCreate(&stream);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess);
    cudaIpcGetMemHandle(&common->data, data);
    cudaIpcGetEventHandle(&common->event, event);
    common->ready = 1;
    for (int k = 0; k < 10'000 && common->opened == 0; ++k) usleep(1000);
    kill(getpid(), SIGKILL);
    work<<<1, 256, 0, stream>>>(data, words, 0);
    return cudaEventRecord(event, stream);
}
int textbook_consumer() {
    if (!begin_cuda()) return 3;
    void* data = nullptr;
    unsigned last = 0;
    cudaEvent_t event;
    cudaStream_t stream;
    for (int k = 0; k < 10'000 && common->ready == 0; ++k) usleep(1000);
    cudaStreamCreate(&stream);
    cudaIpcOpenMemHandle(&data, common->data, cudaIpcMemLazyEnablePeerAccess);
    cudaIpcOpenEventHandle(&event, common->event);
    common->opened = 1;
    usleep(300'000);  // wait until the producer and its context are gone
    const int waits = cudaStreamWaitEvent(stream, event, 0);
    cudaMemcpyAsync(&last, static_cast<unsigned*>(data) + words - 1, 4, cudaMemcpyDeviceToHost, stream);
    const int code = cudaStreamSynchronize(stream);
    figure("cuda.textbook.code", waits != 0 ? waits : code);
    figure("cuda.textbook.whole", last == magic);
    _exit(0);
}
/// Returns the exit code; -1 if the process was killed after `ms`, -2 if a signal ended it.
int end_within(pid_t pid, int ms) {
    for (int status = 0; ms > 0; --ms, usleep(1000))
        if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return -1;
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-events-cuda")) return 2;
    common = lesson::make_record<shared>();
    if (end_of(start([] { return begin_cuda() ? 0 : 3; })) != 0) return lesson::no_gpu(common->why);
    const pid_t one = start(producer), two = start(consumer), three = start(hanging), four = start(saved);
    const bool reached = wait_for(5);
    usleep(1'500'000);  // wait until both waiting processes have their contexts
    const double killed = now_us();
    kill(one, SIGKILL);
    (void)end_of(one);
    common->step = 6;
    const bool polled = reached && wait_for(7);
    figure("cuda.word.saved", end_within(four, 3000) == 0 && polled);
    figure("cuda.hang.code", end_within(three, 2000)), figure("cuda.hang.released", common->released.load());
    figure("cuda.hang.s", (now_us() - killed) / 1e6);
    (void)end_within(two, 1000);
    const pid_t producing = start(textbook_producer), consuming = start(textbook_consumer);
    (void)end_within(producing, 12'000);
    (void)end_within(consuming, 3'000);
    std::fputs(common->output, stdout);
    return polled ? 0 : 1;
}
