#include "supervisor/plan/slot_guard.hpp"

#include <fmt/format.h>

#include "device/cpu/memfd.hpp"

namespace carousel::supervisor {
namespace {

u64 rounded(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

slot_guard none(std::string why) { return {0, 0, std::move(why)}; }

}  // namespace

slot_guard choose_guard(device::memory_kind kind, guard_wish wish, u32 slots, u64 slot_bytes,
                        u64 descriptors_left) {
    if (wish == guard_wish::off) return none("guard = \"off\"");
    if (kind == device::memory_kind::ipc) return none("memory = \"ipc\" is one allocation");
    const bool host = kind == device::memory_kind::memfd;
    const u64 piece = rounded(slot_bytes, host ? device::host_piece_step : device_piece_step);
    if (host) return {slots, piece, ""};
    if (slots > descriptors_left)
        return none(fmt::format("{} more descriptors than the {} left for this run's memory", slots,
                                descriptors_left));
    return {slots, piece, ""};
}

}  // namespace carousel::supervisor
