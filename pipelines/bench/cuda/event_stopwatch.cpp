#include <array>

#include "bench/stopwatch.hpp"
#include "core/errors.hpp"
#include "device/cuda/check.hpp"

namespace carousel::bench {
namespace {

constexpr u32 most_events = 8;
constexpr std::size_t delay_bytes = 64ULL << 20;
constexpr u32 delays = 4;

class event_stopwatch final : public stopwatch {
public:
    explicit event_stopwatch(device::queue& q) : stream_(static_cast<cudaStream_t>(q.native_stream())), queue_(q) {
        for (cudaEvent_t& e : events_) CAROUSEL_CUDA_SETUP("the bench's events", cudaEventCreate(&e));
        CAROUSEL_CUDA_SETUP("the bench's delay", cudaMalloc(&delay_, delay_bytes));
    }
    ~event_stopwatch() override {
        CAROUSEL_CUDA_LOG(cudaFree(delay_));
        for (const cudaEvent_t e : events_) CAROUSEL_CUDA_LOG(cudaEventDestroy(e));
    }
    event_stopwatch(const event_stopwatch&) = delete;
    event_stopwatch& operator=(const event_stopwatch&) = delete;

    void start() override {
        queue_.drain();
        count_ = 0;
        // Fills that take longer than the host needs to enqueue a frame: what is measured waits for the GPU, not the GPU for the host.
        for (u32 k = 0; k < delays; ++k) CAROUSEL_CUDA_RUN("the bench's stream", cudaMemsetAsync(delay_, 0, delay_bytes, stream_));
        lap();
    }
    void lap() override {
        CAROUSEL_ASSERT(count_ < most_events);
        CAROUSEL_CUDA_RUN("the bench's stream", cudaEventRecord(events_[count_++], stream_));
    }
    [[nodiscard]] std::vector<reading> read() override {
        CAROUSEL_CUDA_RUN("the bench's stream", cudaEventSynchronize(events_[count_ - 1]));
        std::vector<reading> laps;
        for (u32 k = 1; k < count_; ++k) {
            float ms = 0;
            CAROUSEL_CUDA_RUN("the bench's stream", cudaEventElapsedTime(&ms, events_[k - 1], events_[k]));
            laps.push_back({ms, 0});
        }
        return laps;
    }

private:
    cudaStream_t stream_;
    device::queue& queue_;
    std::array<cudaEvent_t, most_events> events_{};
    void* delay_ = nullptr;
    u32 count_ = 0;
};

}  // namespace

std::unique_ptr<stopwatch> make_event_stopwatch(device::queue& queue) { return std::make_unique<event_stopwatch>(queue); }

}  // namespace carousel::bench
