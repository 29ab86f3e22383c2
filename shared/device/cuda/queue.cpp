#include "device/cuda/queue.hpp"

#include <cstring>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/status.hpp"

namespace carousel::device::cuda {

queue::queue(const gpu& on) : on_(on), label_(on.label()) {
    on_.bind();
    // The stream is non-blocking, so that work that a library enqueues on the default stream is not ordered
    // relative to the frames.
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
    own.bind();  // called before the capability query, because that query refers to the current device
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

static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(device::event::handle));

event::event(const gpu& on) : on_(on), label_(on.label()) {
    on_.bind();
    CAROUSEL_CUDA_SETUP(label_,
                        cudaEventCreateWithFlags(&shared_, cudaEventDisableTiming | cudaEventInterprocess));
    CAROUSEL_CUDA_SETUP(label_,
                        cudaEventCreateWithFlags(&private_, cudaEventDisableTiming | cudaEventBlockingSync));
}

event::~event() {
    if (!on_.try_bind()) return;
    CAROUSEL_CUDA_LOG(cudaEventDestroy(private_));
    CAROUSEL_CUDA_LOG(cudaEventDestroy(shared_));
}

void event::record(device::queue& on, u64) {
    CAROUSEL_ASSERT(on.kind() == device_kind::cuda);
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, cudaEventRecord(shared_, static_cast<cudaStream_t>(on.native_stream())));
    CAROUSEL_CUDA_RUN(label_, cudaEventRecord(private_, static_cast<cudaStream_t>(on.native_stream())));
}

bool event::done() {
    on_.bind();
    const cudaError_t status = CAROUSEL_CUDA_CALL(cudaEventQuery(private_));
    if (status == cudaSuccess) return true;
    if (status != cudaErrorNotReady) fail_run(status, "cudaEventQuery", label_);
    (void)cudaGetLastError();  // clears "not ready", which is not an error and must not be returned by the
                               // next check of a launch
    return false;
}

void event::wait() {
    on_.bind();
    CAROUSEL_CUDA_RUN(label_, cudaEventSynchronize(private_));
}

event::handle event::export_handle() const {
    on_.bind();
    cudaIpcEventHandle_t raw{};
    CAROUSEL_CUDA_SETUP(label_, cudaIpcGetEventHandle(&raw, shared_));
    handle out{};
    std::memcpy(out.data(), &raw, sizeof raw);
    return out;
}

std::unique_ptr<imported_event> imported_event::open(const gpu& on, const device::event::handle& from) {
    on.bind();
    cudaIpcEventHandle_t raw{};
    std::memcpy(&raw, from.data(), sizeof raw);
    cudaEvent_t opened = nullptr;
    const cudaError_t status = cudaIpcOpenEventHandle(&opened, raw);
    if (status != cudaSuccess) {
        if (is_fault(status)) fail_run(status, "cudaIpcOpenEventHandle", on.label());
        (void)cudaGetLastError();
        log::warning(
            "{}: an event of another process could not be imported: {}; only the process that owns the event "
            "can commit the event's frames",
            on.label(), cudaGetErrorName(status));
        return nullptr;
    }
    return std::make_unique<imported_event>(on, opened);
}

imported_event::~imported_event() {
    if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaEventDestroy(event_));
}

bool imported_event::done(u64) noexcept {
    if (!on_.try_bind()) return false;
    if (cudaEventQuery(event_) == cudaSuccess) return true;
    (void)cudaGetLastError();
    return false;
}

}  // namespace carousel::device::cuda
