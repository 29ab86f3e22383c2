#include "supervisor/plan/guard_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/canary.hpp"
#include "device/cpu/memfd.hpp"
#include "shm/block_guard.hpp"
#include "shm/control_block.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {
namespace {

u64 rounded(u64 bytes, u64 step) { return (bytes + step - 1) / step * step; }

/// Returns the reason why the ring cannot have gaps; "": it can have gaps.
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

bool reads(const run_setup& s, u32 reader, const memory_item& m, const std::vector<ring_place>& rings) {
    if (!m.asset)
        return m.index < rings.size() && s.stages[reader].maps(rings[m.index].stage, rings[m.index].output);
    const asset_setup& a = s.assets[m.index];
    return a.maker != reader && std::find(a.users.begin(), a.users.end(), reader) != a.users.end();
}

/// A GPU fault ends all processes that share the MPS domain.
const char* in_domain(const run_setup& s, bool can_fault) {
    return can_fault && s.has_mps() ? " (under MPS: all stages of its domain, which is then renewed)" : "";
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

std::vector<unguarded_input> unguarded_inputs(const run_setup& s) {
    const std::vector<ring_place> rings = s.rings();
    const std::vector<memory_item> memory = plan_memory(s);
    std::vector<unguarded_input> out;
    for (u32 k = 0; k < s.stages.size(); ++k)
        for (const memory_item& m : memory)
            if (reads(s, k, m, rings))
                if (const std::string why = why_unguarded(s.stages[k], m); !why.empty())
                    out.push_back({s.stages[k].spec.name, m.name, why});
    return out;
}

std::vector<unguarded_output> unguarded_outputs(const run_setup& s) {
    std::vector<unguarded_output> out;
    for (const memory_item& m : plan_memory(s))
        if (!m.asset && !m.guard.gaps() && !m.guard.canaries()) out.push_back({m.name, m.guard.why});
    return out;
}

bool has_canaries(const shm::control_block& made, u32 stage, const stage_setup& as) {
    bool all = stage < shm::max_stages && as.outputs() > 0;
    for (u32 o = 0; all && o < std::min(as.outputs(), shm::max_outputs); ++o) {
        const u32 link = made.stage[stage].output_link[o];
        all = link < shm::max_links && made.link[link].slot_bytes > as.ring(o).slot_bytes;
    }
    return all;
}

void require_guards(const run_setup& s) {
    const std::vector<unguarded_output> open = unguarded_outputs(s);
    for (const auto [k, output] : s.rings()) {
        const stage_setup& st = s.stages[k];
        const link_spec& link = st.ring(output).link;
        const guard_request requested = link.guard;
        if (requested == guard_request::automatic || requested == guard_request::off) continue;
        for (const unguarded_output& u : open)
            if (u.memory == "ring " + st.ring_name(output))
                refuse(link.key_at.count("guard") != 0 ? link.key_at.at("guard") : st.spec.at,
                       fmt::format("guard = \"{}\" is unavailable for {}: {}; use \"auto\"",
                                   word_of(guard_words, requested), u.memory, u.why));
    }
}

std::string output_guard_text(const run_setup& s) {
    const std::vector<memory_item> items = plan_memory(s);
    const bool any_gaps =
        std::any_of(items.begin(), items.end(), [](const memory_item& m) { return m.guard.gaps(); });
    std::string text;
    for (const unguarded_output& u : unguarded_outputs(s))
        text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", u.memory, u.why);
    if (text.empty())
        text = std::string("outputs: guarded; a stage's write beyond its slot ends only that stage") +
               in_domain(s, any_gaps);
    else
        text = "outputs: unguarded, because there is neither a gap nor a canary after the slots of " + text;
    std::string late;
    for (const memory_item& m : items)
        if (m.guard.canaries())
            late += fmt::format("{}{} ({})", late.empty() ? "" : "; ", m.name, m.guard.why);
    if (late.empty()) return text;
    return text + "; by canaries of 64 KiB, checked when the frame is complete, after the slots of " + late;
}

std::string guard_text(const run_setup& s) {
    const std::vector<unguarded_input> open = unguarded_inputs(s);
    if (open.empty())
        return std::string("inputs: guarded; a stage's write to an input ends only that stage") +
               in_domain(s, true);
    std::string text;
    for (const unguarded_input& u : open)
        text +=
            fmt::format("{}{} could write to {} ({})", text.empty() ? "" : "; ", u.stage, u.memory, u.why);
    return "inputs: unguarded: " + text;
}

std::string block_guard_text(const run_setup& s) {
    std::string text = "control block: ";
    text += shm::has_protection_keys() ? "guarded; a stage's own code can't write to it (own pages per "
                                         "stage; protection keys open them only inside the ring's functions)"
                                       : fmt::format(
                                             "guarded except a stage's own pages, to which its own code "
                                             "could write (no protection keys: {})",
                                             shm::why_no_keys());
    std::string ports;
    for (const stage_setup& st : s.stages)
        if (st.spec.is_port()) ports += fmt::format("{}{}", ports.empty() ? "" : ", ", st.spec.name);
    if (!ports.empty() && shm::has_protection_keys())
        text += fmt::format(
            "; a program at the port {} is guarded by separate pages only, because the run does not set the "
            "protection keys of its threads",
            ports);
    return text;
}

}  // namespace carousel::supervisor
