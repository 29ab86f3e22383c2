#include "supervisor/plan/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/canary.hpp"
#include "device/device_failure.hpp"
#include "ring/topology.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

using device::device_id;
using device::device_kind;
using device::memory_kind;

memory_choice choose_memory(const std::vector<device_id>& ends, memory_kind requested) {
    const bool any_cpu =
        std::any_of(ends.begin(), ends.end(), [](const device_id& d) { return d.kind == device_kind::cpu; });
    const bool one_simulated = !ends.empty() && std::all_of(ends.begin(), ends.end(), [](const device_id& d) {
        return d.uuid == device::simulated_uuid;
    });
    if (one_simulated) return {memory_kind::memfd, ends.front()};
    if (ends.empty() || any_cpu) return {memory_kind::memfd, {}};
    const bool one = std::all_of(ends.begin(), ends.end(),
                                 [&](const device_id& d) { return d.uuid == ends.front().uuid; });
    if (!one) return {memory_kind::vmm, ends.front()};
    return {requested == memory_kind::ipc ? memory_kind::ipc : memory_kind::vmm, ends.front()};
}

std::string why_unguarded(const stage_setup& reader, const memory_item& m) {
    const bool on_host = m.choice.kind == device::memory_kind::memfd;
    const bool from_gpu = on_host && reader.device.kind == device::device_kind::cuda;
    // the stage reads its own copy of the asset (stages/runner/runtime.cpp)
    if (from_gpu && m.asset) return "";
    if (reader.writable_inputs) return "it requests writable inputs";
    if (m.choice.kind == device::memory_kind::ipc) return "memory = \"ipc\" is mapped for writing";
    if (from_gpu && !reader.read_only_host)
        return fmt::format("{} can't page-lock host memory read-only", reader.device_name);
    return "";
}

namespace {
void add_devices(const stage_setup& s, std::vector<device_id>& to) {
    for (u32 k = 0; k < s.spec.instances; ++k) to.push_back(s.device_of(k));
}

memory_item ring_of(const stage_setup& maker, u32 output, u32 link, u32 slots, const memory_choice& choice,
                    u64 descriptors_left) {
    const ring_setup& r = maker.ring(output);
    memory_item m{"ring " + maker.ring_name(output), false, link, u64{slots} * r.slot_bytes, choice};
    m.guard = choose_guard(choice.kind, r.link.guard, slots, r.slot_bytes, descriptors_left,
                           {!maker.spec.is_port(), maker.same_host_address});
    if (m.guard.gaps()) m.bytes = u64{slots} * m.guard.piece_bytes;
    m.bytes += slots * m.guard.canary_bytes;
    return m;
}
}  // namespace

std::vector<memory_item> plan_memory(const run_setup& s) {
    const ring::plan p = plan_of(s);
    std::vector<memory_item> items;
    const std::vector<ring_place> rings = s.rings();
    const u64 blocks = s.assets.size() + rings.size();  // each block has at least one descriptor
    u64 left = most_descriptors - std::min(blocks, most_descriptors);
    for (u32 link = 0; link < rings.size(); ++link) {
        const auto [k, output] = rings[link];
        std::vector<device_id> ends;
        add_devices(s.stages[k], ends);
        for (const stage_setup& other : s.stages)
            if (other.maps(k, output)) add_devices(other, ends);
        items.push_back(ring_of(s.stages[k], output, link, ring::derived_slots(p, k, output),
                                choose_memory(ends, s.stages[k].ring(output).memory), left));
        slot_guard& guard = items.back().guard;
        guard.readers_write = std::any_of(
            s.stages.begin(), s.stages.end(), [&, k = k, output = output](const stage_setup& other) {
                return other.maps(k, output) && !why_unguarded(other, items.back()).empty();
            });
        guard.others_write = guard.readers_write || s.stages[k].spec.instances > 1;
        if (items.back().choice.kind == memory_kind::vmm)
            left -= std::min<u64>(left, items.back().guard.pieces);
    }
    for (u32 a = 0; a < s.assets.size(); ++a) {
        std::vector<device_id> ends;
        add_devices(s.stages[s.assets[a].maker], ends);
        for (const u32 user : s.assets[a].users) add_devices(s.stages[user], ends);
        items.push_back({"asset " + s.assets[a].name, true, a, s.assets[a].bytes,
                         choose_memory(ends, s.stages[s.assets[a].maker].memory)});
    }
    return items;
}

ring::plan guarded_plan_of(const run_setup& s) {
    ring::plan p = plan_of(s);
    const std::vector<memory_item> memory = plan_memory(s);
    auto of = memory.begin();  // the rings come before the assets, in the order of their links
    const auto make_room = [&](ring::stage_plan& st, u64& slot_bytes) {
        if (!(of++)->guard.canaries()) return;
        slot_bytes += device::canary_bytes;
        // no other process may commit for the stage, because only the stage checks its canaries
        st.owner_commits = true;
    };
    for (ring::stage_plan& st : p.stages) {
        if (!st.has_output) continue;
        make_room(st, st.slot_bytes);
        for (ring::ring_plan& r : st.more) make_room(st, r.slot_bytes);
    }
    return p;
}

namespace {

constexpr u64 spare_server_bytes = 20 * 1024 * 1024;  ///< memory of an MPS server without clients, on an H200

void add_if_elsewhere(const memory_item& of, u64 bytes, const char* what, const stage_setup& user,
                      std::vector<memory_item>& to) {
    for (u32 k = 0; k < user.spec.instances; ++k) {
        const device_id& own = user.device_of(k);
        const bool here = of.choice.kind != memory_kind::memfd && of.choice.device.uuid == own.uuid;
        if (own.kind == device_kind::cuda && !here)
            to.push_back({what + of.name, of.asset, of.index, bytes, {memory_kind::vmm, own}, true});
    }
}

/// Adds the copies that stages on GPUs keep of a sampled ring: see sampled_inputs.hpp of the runner.
void add_sampled_copies(const memory_item& of, const run_setup& s, ring_place at,
                        std::vector<memory_item>& to) {
    for (const stage_setup& st : s.stages)
        for (u32 k = 0; st.samples(at.stage, at.output) && k < st.spec.instances; ++k)
            if (const device_id& own = st.device_of(k); own.kind == device_kind::cuda)
                to.push_back({"copies of " + of.name,
                              false,
                              of.index,
                              (u64{st.lanes} + 2) * s.stages[at.stage].ring(at.output).slot_bytes,
                              {memory_kind::vmm, own},
                              true});
}

}  // namespace

std::vector<memory_item> plan_extra_memory(const run_setup& s) {
    std::vector<memory_item> items;
    const std::vector<ring_place> rings = s.rings();
    for (const memory_item& m : plan_memory(s)) {
        if (m.asset) {
            for (const u32 user : s.assets[m.index].users)
                add_if_elsewhere(m, m.bytes, "a copy of ", s.stages[user], items);
        } else if (m.choice.kind != memory_kind::memfd) {
            const auto [maker, output] = rings.at(m.index);
            const u64 bytes = s.stages[maker].ring(output).slot_bytes;
            for (u32 k = 0; k < s.stages.size(); ++k)
                if (k == maker || s.stages[k].reads(maker, output))
                    add_if_elsewhere(m, bytes, "a slot of ", s.stages[k], items);
        }
        if (!m.asset) add_sampled_copies(m, s, rings.at(m.index), items);
    }
    for (const stage_setup& st : s.stages)
        if (const device_id& own = st.device; st.state && own.kind == device_kind::cuda)
            items.push_back({"zeros before the first state of " + st.spec.name,
                             false,
                             0,
                             st.ring(st.outputs() - 1).slot_bytes,
                             {memory_kind::vmm, own},
                             true});
    std::vector<std::string> with_spare;
    for (const stage_setup& st : s.stages) {
        for (u32 k = 0; st.mps && k < st.spec.instances; ++k) {
            const device_id& own = st.device_of(k);
            if (std::find(with_spare.begin(), with_spare.end(), own.uuid) != with_spare.end()) continue;
            with_spare.push_back(own.uuid);
            items.push_back(
                {"the spare MPS server", false, 0, spare_server_bytes, {memory_kind::vmm, own}, true});
        }
    }
    return items;
}

}  // namespace carousel::supervisor
