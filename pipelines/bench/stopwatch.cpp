#include "bench/stopwatch.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/clock.hpp"
#include "device/cpu/pool.hpp"

namespace carousel::bench {
namespace {

class wall_stopwatch final : public stopwatch {
public:
    explicit wall_stopwatch(device::queue& q) : queue_(q) {}
    void start() override {
        laps_.clear();
        queue_.drain();
        cpu_ = process_cpu_ns(), wall_ = now_ns();
    }
    void lap() override {
        queue_.drain();
        const u64 wall = now_ns(), cpu = process_cpu_ns();
        laps_.push_back(
            {static_cast<f64>(wall - wall_) / ns_per_ms, static_cast<f64>(cpu - cpu_) / ns_per_ms});
        wall_ = now_ns(), cpu_ = process_cpu_ns();
    }
    [[nodiscard]] std::vector<reading> read() override { return laps_; }

private:
    device::queue& queue_;
    u64 wall_ = 0, cpu_ = 0;
    std::vector<reading> laps_;
};

}  // namespace

std::unique_ptr<stopwatch> make_stopwatch(device::queue& queue) {
#if defined(CAROUSEL_WITH_CUDA)
    if (queue.kind() == device::device_kind::cuda) return make_event_stopwatch(queue);
#endif
    return std::make_unique<wall_stopwatch>(queue);
}

f64 copy_bandwidth(device::context& context, device::queue& queue, u64 bytes) {
    constexpr u64 grain = 1 << 20;
    constexpr int repeats = 7;  // the first one is a warm-up
    const auto from = context.allocate(bytes), to = context.allocate(bytes);
    const auto watch = make_stopwatch(queue);
    f64 best = 0;
    for (int k = 0; k < repeats; ++k) {
        watch->start();
        if (queue.kind() == device::device_kind::cuda) {
            queue.copy(to->data(), from->data(), bytes);
        } else {
            queue.submit([out = to->data(), in = from->data(), bytes](device::cpu::pool& pool) {
                pool.parallel_for((bytes + grain - 1) / grain, 1, [&](u64 begin, u64 end, unsigned) {
                    std::memcpy(out + begin * grain, in + begin * grain,
                                std::min(end * grain, bytes) - begin * grain);
                });
            });
        }
        watch->lap();
        const f64 ms = watch->read()[0].ms;
        if (k > 0) best = std::max(best, 2.0 * static_cast<f64>(bytes) / (ms / 1000.0));
    }
    return best;
}

}  // namespace carousel::bench
