#include "stages/runner/guarded_memory.hpp"

#include <array>
#include <atomic>
#include <cstdint>

#include "shm/block_guard.hpp"

namespace carousel::stages {
namespace {

struct range {
    std::uintptr_t from = 0;
    u64 bytes = 0;                                   ///< length of the address range
    u64 slot_bytes = 0, stride = 0, first_slot = 0;  ///< for a ring; first_slot: offset from the first
                                                     ///< address
    ring::wild_write_target what = ring::wild_write_target::nothing;
    u32 index = 0;
};
/// Each row is written once, by the thread that has claimed it.
struct row {
    range of;
    std::atomic<bool> whole{false};  // lock-free: read in a signal handler
};
std::array<row, shm::max_inputs + shm::max_sampled_inputs + shm::max_outputs + shm::max_assets> rows;
std::atomic<u32> taken{0};
std::atomic<const shm::frame_segment*> segments{nullptr};

ring::wild_write in_headers(std::uintptr_t at) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(segments.load(std::memory_order_acquire));
    if (from == 0 || at < from || at - from >= shm::max_links * sizeof(shm::frame_segment)) return {};
    const u64 offset = (at - from) % sizeof(shm::frame_segment);
    return {ring::wild_write_target::header, static_cast<u32>((at - from) / sizeof(shm::frame_segment)),
            static_cast<u32>(offset / sizeof(shm::frame_header)), offset % sizeof(shm::frame_header)};
}

/// The words of the block, in a process that has closed them to writes.
ring::wild_write in_block(std::uintptr_t at) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(shm::guarded_block());
    if (from == 0 || at < from || at - from >= shm::word_bytes) return {};
    const shm::block_place place = shm::place_in_block(at - from);
    return {ring::wild_write_target::block, static_cast<u32>(place.part), place.index, place.offset};
}

// The bytes before a slot within its piece, and the gap before these bytes, are treated as the area after the
// previous slot.
ring::wild_write place_in(const range& r, u64 offset) noexcept {
    if (r.slot_bytes == 0) return {r.what, r.index, 0, offset};
    const u64 from_first = offset < r.first_slot ? 0 : offset - r.first_slot;
    const u64 within = from_first % r.stride;
    const bool is_after_slot = r.what == ring::wild_write_target::input && within >= r.slot_bytes;
    return {is_after_slot ? ring::wild_write_target::after_input : r.what, r.index,
            static_cast<u32>(from_first / r.stride), within};
}

}  // namespace

void guard(const device::mapping& memory, ring::wild_write_target what, u32 index, u64 slot_bytes,
           u32 slots) noexcept {
    const bool open = !memory.read_only() && !memory.has_gaps();
    if (open || memory.host_data() == nullptr) return;
    const u32 n = taken.fetch_add(1, std::memory_order_relaxed);  // relaxed order suffices: only a unique
                                                                  // number is needed
    if (n >= rows.size()) return;
    range r{
        reinterpret_cast<std::uintptr_t>(memory.host_data()), memory.bytes(), slot_bytes, 0, 0, what, index};
    if (slot_bytes != 0) {
        r.stride = memory.stride(slot_bytes);
        r.first_slot = static_cast<u64>(memory.slot(0, slot_bytes) - memory.data());
        r.bytes = slots * r.stride;
    }
    rows[n].of = r;
    rows[n].whole.store(true, std::memory_order_release);
}

void guard_headers(const shm::control_block& c) noexcept {
    segments.store(c.frames, std::memory_order_release);
}

ring::wild_write find_wild_write(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (const row& each : rows) {
        const range& r = each.of;
        if (!each.whole.load(std::memory_order_acquire)) continue;
        if (at >= r.from && at - r.from < r.bytes) return place_in(r, at - r.from);
    }
    const ring::wild_write header = in_headers(at);
    return header.what != ring::wild_write_target::nothing ? header : in_block(at);
}

}  // namespace carousel::stages
