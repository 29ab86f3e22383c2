#include "supervisor/plan/peer_reach.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {
namespace {

void require_reach_of(const run_setup& s, const memory_item& m, u32 stage, const machine_offer& machine) {
    const stage_setup& st = s.stages[stage];
    for (u32 k = 0; m.choice.kind == device::memory_kind::vmm && k < st.spec.instances; ++k) {
        const device::device_id& own = st.device_of(k);
        const auto gpu = std::find_if(machine.gpus.begin(), machine.gpus.end(),
                                      [&](const gpu_offer& g) { return g.id.uuid == own.uuid; });
        if (gpu == machine.gpus.end() || !gpu->peers || own.uuid == m.choice.device.uuid) continue;
        const std::vector<int>& peers = *gpu->peers;
        if (std::find(peers.begin(), peers.end(), m.choice.device.ordinal) != peers.end()) continue;
        throw device_error(
            fmt::format("{}: stage {}: {} is on cuda:{}, and {} can't access that memory (no NVLink, or PCIe "
                        "on different bridges), neither by a mapping nor by a copy: place both on one GPU, "
                        "or one of the stages on the CPU (the ring is then in host memory); `carousel "
                        "doctor` lists GPUs with peer access",
                        st.spec.position_of("device").text(), st.spec.name, m.name, m.choice.device.ordinal,
                        st.device_name_of(k)));
    }
}

}  // namespace

void require_reach(const run_setup& s, const machine_offer& machine) {
    const std::vector<ring_place> rings = s.rings();
    const auto maps_ring = [&](u32 stage, u32 link) {
        const ring_place at = rings.at(link);
        return at.stage == stage || s.stages[stage].maps(at.stage, at.output);
    };
    for (const memory_item& m : plan_memory(s)) {
        for (u32 k = 0; k < s.stages.size(); ++k) {
            const bool maps = m.asset
                                  ? std::find(s.assets[m.index].users.begin(), s.assets[m.index].users.end(),
                                              k) != s.assets[m.index].users.end()
                                  : maps_ring(k, m.index);
            if (maps) require_reach_of(s, m, k, machine);
        }
    }
}

}  // namespace carousel::supervisor
