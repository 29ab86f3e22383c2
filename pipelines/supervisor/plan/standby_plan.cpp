#include "supervisor/plan/standby_plan.hpp"

#include <fmt/format.h>

#include <map>

#include "os/table.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {
namespace {

/// The number of instances on each GPU, by uuid, of the stages for which `counts` is true.
template <typename F>
std::map<std::string, u32> contexts_of(const run_setup& s, F&& counts) {
    std::map<std::string, u32> on;
    for (const stage_setup& st : s.stages)
        for (u32 k = 0; counts(st) && k < st.spec.instances; ++k)
            if (const device::device_id& own = st.device_of(k); own.kind == device::device_kind::cuda)
                ++on[own.uuid];
    return on;
}

bool can_have_standby(const stage_setup& st) {
    return st.spec.restart == restart_policy::always && st.spec.prefix.empty() && !st.spec.latest() &&
           !st.spec.is_port() && !st.spec.remote;
}

bool uses_gpu(const stage_setup& st) {
    for (u32 k = 0; k < st.spec.instances; ++k)
        if (st.device_of(k).kind == device::device_kind::cuda) return true;
    return st.mps;
}

/// The first GPU without room for the contexts of all processes and standbys; "": there is none.
std::string crowded_gpu(const run_setup& s, const free_memory& memory) {
    std::map<std::string, u64> taken;
    for (const auto& [uuid, contexts] : contexts_of(s, [](const stage_setup&) { return true; }))
        taken[uuid] += contexts * context_bytes;
    for (const auto& [uuid, contexts] : contexts_of(s, [](const stage_setup& st) { return st.spec.standby; }))
        taken[uuid] += contexts * context_bytes;
    for (const auto& items : {plan_memory(s), plan_extra_memory(s)})
        for (const memory_item& m : items)
            if (const auto at = taken.find(m.choice.device.uuid); at != taken.end()) at->second += m.bytes;
    for (const auto& [uuid, bytes] : taken) {
        const auto free = memory.gpu.find(uuid);
        if (free != memory.gpu.end() && free->second < bytes)
            return fmt::format("rings and contexts would take {} of the {} free on a GPU", human_bytes(bytes),
                               human_bytes(free->second));
    }
    return "";
}

}  // namespace

void choose_standbys(run_setup& s, const free_memory& memory) {
    std::vector<stage_setup*> chosen;
    for (stage_setup& st : s.stages)
        if (st.spec.standby_auto && can_have_standby(st) && uses_gpu(st)) chosen.push_back(&st);
    for (stage_setup* st : chosen) st->spec.standby = true;
    std::string why = crowded_gpu(s, memory);
    if (why.empty()) why = no_spare_text(s);
    if (why.empty()) return;
    for (stage_setup* st : chosen) st->spec.standby = false;
    if (!chosen.empty()) s.standby_reason = why;
}

std::string standby_text(const run_setup& s) {
    std::string names;
    u64 bytes = 0;
    for (const stage_setup& st : s.stages)
        if (st.spec.standby) names += (names.empty() ? "" : ", ") + st.spec.name;
    for (const auto& [uuid, contexts] : contexts_of(s, [](const stage_setup& st) { return st.spec.standby; }))
        bytes += contexts * context_bytes;
    if (names.empty()) return s.standby_reason.empty() ? "" : "no standbys: " + s.standby_reason;
    return fmt::format(
        "standbys: {}{}", names,
        bytes == 0 ? "" : fmt::format("; about {} of GPU memory for their contexts", human_bytes(bytes)));
}

std::string no_spare_text(const run_setup& s) {
    for (const stage_setup& st : s.stages)
        if (st.mps && st.spec.standby && st.one_server)
            return fmt::format(
                "{} is in compute mode EXCLUSIVE_PROCESS, which admits one MPS server: standbys "
                "need a second one (`nvidia-smi -c DEFAULT`)",
                st.device_name);
    return "";
}

}  // namespace carousel::supervisor
