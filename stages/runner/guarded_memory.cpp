#include "stages/runner/guarded_memory.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace carousel::stages {
namespace {

struct range {
    std::uintptr_t from = 0;
    u64 bytes = 0, slot_bytes = 0;
    ring::stray_target what = ring::stray_target::nothing;
    u32 index = 0;
};
std::array<range, shm::max_inputs + shm::max_assets> ranges;
std::atomic<u32> count{0};  // lock-free: read in a signal handler
std::atomic<const shm::frame_segment*> segments{nullptr};

ring::stray in_headers(std::uintptr_t at) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(segments.load(std::memory_order_acquire));
    if (from == 0 || at < from || at - from >= shm::max_links * sizeof(shm::frame_segment)) return {};
    const u64 offset = (at - from) % sizeof(shm::frame_segment);
    return {ring::stray_target::header, static_cast<u32>((at - from) / sizeof(shm::frame_segment)),
            static_cast<u32>(offset / sizeof(shm::frame_header)), offset % sizeof(shm::frame_header)};
}

}  // namespace

void guard(const device::mapping& memory, ring::stray_target what, u32 index, u64 slot_bytes) noexcept {
    const u32 n = count.load(std::memory_order_relaxed);
    if (!memory.read_only() || memory.host_data() == nullptr || n == ranges.size()) return;
    ranges[n] = {reinterpret_cast<std::uintptr_t>(memory.host_data()), memory.bytes(), slot_bytes, what,
                 index};
    count.store(n + 1, std::memory_order_release);
}

void guard(const shm::control_block& c) noexcept { segments.store(c.frames, std::memory_order_release); }

ring::stray find_stray(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const u32 n = count.load(std::memory_order_acquire);
    for (u32 k = 0; k < n; ++k) {
        const range& r = ranges[k];
        if (at < r.from || at - r.from >= r.bytes) continue;
        const u64 offset = at - r.from;
        if (r.slot_bytes == 0) return {r.what, r.index, 0, offset};
        return {r.what, r.index, static_cast<u32>(offset / r.slot_bytes), offset % r.slot_bytes};
    }
    return in_headers(at);
}

}  // namespace carousel::stages
