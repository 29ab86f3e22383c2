#include "supervisor/plan/slot_guard.hpp"

#include <fmt/format.h>

#include "device/canary.hpp"
#include "device/cpu/memfd.hpp"

namespace carousel::supervisor {
namespace {

u64 rounded(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

/// Returns the reason why the ring has no gaps; "": it can have them.
std::string why_no_gaps(device::memory_kind kind, guard_request requested, u32 slots, u64 descriptors_left,
                        bool same_host_address) {
    if (requested == guard_request::canary) return "guard = \"canary\"";
    if (kind == device::memory_kind::ipc) return "memory = \"ipc\" is one allocation";
    if (kind == device::memory_kind::memfd)
        return same_host_address ? "" : "its writer's GPU uses other addresses for host memory than the CPU";
    if (slots <= descriptors_left) return "";
    return fmt::format("it needs {} more descriptors than the {} left for this run's memory", slots,
                       descriptors_left);
}

}  // namespace

slot_guard choose_guard(device::memory_kind kind, guard_request requested, u32 slots, u64 slot_bytes,
                        u64 descriptors_left, slot_writer by) {
    if (requested == guard_request::off) return {0, 0, "guard = \"off\""};
    const std::string why = why_no_gaps(kind, requested, slots, descriptors_left, by.same_host_address);
    if (why.empty()) {
        const bool host = kind == device::memory_kind::memfd;
        return {slots, rounded(slot_bytes, host ? device::host_piece_step : device_piece_step), ""};
    }
    if (requested == guard_request::gap) return {0, 0, why};
    if (!by.plants) return {0, 0, why + ", and a port has no canary"};
    return {0, 0, why, device::canary_bytes};
}

const char* slot_guard::name() const noexcept { return gaps() ? "gap" : canaries() ? "canary" : "none"; }

}  // namespace carousel::supervisor
