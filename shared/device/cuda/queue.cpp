#include "device/cuda/queue.hpp"

#include "core/errors.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/status.hpp"

namespace carousel::device::cuda {

queue::queue(const gpu& on) : on_(on), label_(on.label()) {
    on_.bind();
    // Non-blocking: work of a library on the default stream must not be ordered relative to the frames.
    CAROUSEL_CUDA_SETUP(label_, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

queue::~queue() {
    if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaStreamDestroy(stream_));
}

void queue::copy(void* to, const void* from, u64 bytes) {
    if (bytes == 0) return;
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
}

void queue::fill(void* to, u8 value, u64 bytes) {
    if (bytes == 0) return;
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, cudaMemsetAsync(to, value, bytes, stream_));
}

void queue::status(const status_step& step) {
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, launch_status(*this, step));
}

void guarded_status(device::queue& q, const status_step& step, std::span<const canary_step> canaries) {
    auto& own = static_cast<queue&>(q);
    own.bind();  // bound before the capability query, which refers to the current device
    CAROUSEL_CUDA_RUN(own.label(), launch_guarded(q, step, canaries));
}

void plant_canaries(device::queue& q, std::span<const canary_step> canaries) {
    auto& own = static_cast<queue&>(q);
    own.bind();
    CAROUSEL_CUDA_RUN(own.label(), launch_plant(q, canaries));
}

void queue::drain() {
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, cudaStreamSynchronize(stream_));
}

void queue::fault() {
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, launch_fault(stream_));
}

void queue::submit(std::function<void(cpu::pool&)>) {
    throw error(exit_code::stage_exception,
                label_ + ": queue::submit runs tasks on CPU queues; launch kernels on native_stream() here");
}

}  // namespace carousel::device::cuda
