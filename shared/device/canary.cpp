#include "device/canary.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/errors.hpp"
#include "device/cpu/status.hpp"

#if CAROUSEL_WITH_CUDA
#include "device/cuda/status.hpp"
#endif

namespace carousel::device {
namespace {

void check_canary_parts(const canary_step& c) noexcept {
    for (u32 part = 0; part < canary_parts; ++part)
        if (const u32 result = cpu::check_canary(c.at, c.key, part); result != canary_whole)
            std::atomic_ref<u32>(c.found->part[part]).store(result, std::memory_order_relaxed);
}

}  // namespace

void guarded_status(queue& on, const status_step& step, std::span<const canary_step> canaries, bool at_once) {
    CAROUSEL_ASSERT(canaries.size() <= most_canaries);
    if (canaries.empty()) return on.status(step);
#if CAROUSEL_WITH_CUDA
    if (on.kind() == device_kind::cuda) return cuda::guarded_status(on, step, canaries);
#endif
    if (at_once) {
        for (const canary_step& c : canaries) check_canary_parts(c);
        return on.status(step);
    }
    std::array<canary_step, most_canaries> checks{};
    std::copy(canaries.begin(), canaries.end(), checks.begin());
    on.submit([checks, count = canaries.size()](cpu::pool&) {
        for (std::size_t k = 0; k < count; ++k) check_canary_parts(checks[k]);
    });
    on.status(step);
}

void plant_canaries(queue& on, std::span<const canary_step> canaries) {
    CAROUSEL_ASSERT(canaries.size() <= most_canaries);
    if (canaries.empty()) return;
#if CAROUSEL_WITH_CUDA
    if (on.kind() == device_kind::cuda) return cuda::plant_canaries(on, canaries);
#endif
    for (const canary_step& c : canaries) cpu::plant_canary(c.at, c.key);
}

}  // namespace carousel::device
