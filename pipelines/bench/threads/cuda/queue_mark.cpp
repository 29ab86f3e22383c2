#include <cuda_runtime_api.h>

#include "bench/threads/thread_stage.hpp"
#include "device/cuda/check.hpp"

namespace carousel::bench {
namespace {

class cuda_mark final : public queue_mark {
public:
    cuda_mark() {
        CAROUSEL_CUDA_SETUP(
            "the bench's events",
            cudaEventCreateWithFlags(&event_, cudaEventBlockingSync | cudaEventDisableTiming));
    }
    ~cuda_mark() override { CAROUSEL_CUDA_LOG(cudaEventDestroy(event_)); }
    cuda_mark(const cuda_mark&) = delete;
    cuda_mark& operator=(const cuda_mark&) = delete;

    void record(device::queue& on) override {
        CAROUSEL_CUDA_RUN("the bench's events", cudaEventRecord(event_, stream_of(on)));
    }
    void hold(device::queue& on) override {
        CAROUSEL_CUDA_RUN("the bench's events", cudaStreamWaitEvent(stream_of(on), event_, 0));
    }
    void wait() override { CAROUSEL_CUDA_RUN("the bench's events", cudaEventSynchronize(event_)); }

private:
    static cudaStream_t stream_of(device::queue& on) { return static_cast<cudaStream_t>(on.native_stream()); }
    cudaEvent_t event_ = nullptr;
};

}  // namespace

std::unique_ptr<queue_mark> make_cuda_mark() { return std::make_unique<cuda_mark>(); }

}  // namespace carousel::bench
