#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/stopwatch.hpp"
#include "core/errors.hpp"
#include "device/cuda/check.hpp"

namespace carousel::bench {
namespace {

constexpr u32 most_events = 8;

/// Holds a stream until the host has enqueued all work to be measured, so that the GPU does not wait for the
/// host during the measurement. (A long fill or copy before the work would instead empty the GPU's caches.)
/// The hold ends after one second at the latest, because the enqueueing of an operation may wait for the
/// stream.
struct gate {
    std::atomic<bool> open{false};
    static void hold(void* self) {
        auto& open = static_cast<gate*>(self)->open;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (!open.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until)
            std::this_thread::yield();
    }
};

class event_stopwatch final : public stopwatch {
public:
    explicit event_stopwatch(device::queue& q)
        : stream_(static_cast<cudaStream_t>(q.native_stream())), queue_(q) {
        for (cudaEvent_t& e : events_) CAROUSEL_CUDA_SETUP("the bench's events", cudaEventCreate(&e));
    }
    ~event_stopwatch() override {
        gate_.open.store(true, std::memory_order_release);
        CAROUSEL_CUDA_LOG(cudaStreamSynchronize(stream_));  // the stream may still be polling the gate, which
                                                            // this object owns
        for (const cudaEvent_t e : events_) CAROUSEL_CUDA_LOG(cudaEventDestroy(e));
    }
    event_stopwatch(const event_stopwatch&) = delete;
    event_stopwatch& operator=(const event_stopwatch&) = delete;

    void start() override {
        queue_.drain();
        count_ = 0;
        gate_.open.store(false, std::memory_order_relaxed);
        CAROUSEL_CUDA_RUN("the bench's stream", cudaLaunchHostFunc(stream_, gate::hold, &gate_));
        lap();
    }
    void lap() override {
        CAROUSEL_ASSERT(count_ < most_events);
        CAROUSEL_CUDA_RUN("the bench's stream", cudaEventRecord(events_[count_++], stream_));
    }
    [[nodiscard]] std::vector<reading> read() override {
        gate_.open.store(true, std::memory_order_release);
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
    gate gate_;
    u32 count_ = 0;
};

}  // namespace

std::unique_ptr<stopwatch> make_event_stopwatch(device::queue& queue) {
    return std::make_unique<event_stopwatch>(queue);
}

}  // namespace carousel::bench
