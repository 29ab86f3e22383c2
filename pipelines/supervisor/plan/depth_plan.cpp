#include "supervisor/plan/depth_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/cgroup.hpp"
#include "device/cpu/memfd.hpp"
#include "os/table.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {
namespace {

using device::device_kind;
using nlohmann::json;

/// On the CPU one frame is computed while the next is queued: more frames would only pollute the caches.
constexpr u32 lanes_on_gpu = max_in_flight, lanes_on_cpu = 2, lanes_for_low = 2, ahead = 2;
constexpr u64 share = 2;  ///< rings and assets may take 1/share of the free memory

bool on_gpu(const stage_setup& s) { return is_gpu(s.device) || s.deep_on_cpu; }

/// Returns the number of lanes that one instance gets if at most `most` frames may be in flight.
u32 lanes_of(const stage_setup& s, u32 most) {
    if (s.spec.in_flight) return *s.spec.in_flight;
    if (s.spec.latest()) return 1;  // the stage reads one frame at a time
    if (!on_gpu(s)) return std::min(most, lanes_on_cpu);
    const u32 a_share = (most + s.spec.instances - 1) / s.spec.instances;
    return std::clamp(a_share, std::min(most, lanes_for_low), max_in_flight);
}

u32 window_of(const run_setup& s, ring_place at, u32 most) {
    const stage_setup& from = s.stages[at.stage];
    if (const auto& given = from.ring(at.output).link.window) return *given;
    const u32 own = from.lanes * from.spec.instances;
    u32 readers = 0;
    bool governed = on_gpu(from) && !from.spec.in_flight;
    for (const stage_setup& r : s.stages) {
        if (!r.reads(at.stage, at.output)) continue;
        readers = std::max(readers, r.lanes * r.spec.instances);
        governed = governed && (!r.spec.in_flight || r.spec.latest());
    }
    const u32 both = own + readers;
    u32 window = both;
    if (governed && s.latency == latency_kind::balanced) window = std::max(own, readers) + ahead;
    if (!governed && most > lanes_on_cpu) window = std::max(8U, both);  // a stage of the run is on a GPU
    // derived_slots(): number of slots that a ring has in addition to its window
    const u32 kept = from.state && at.output + 1 == from.outputs() ? 1 : 0;
    const u32 extra_slots = own + from.lanes + 1 + kept;
    const u32 room = shm::max_slots > extra_slots ? shm::max_slots - extra_slots : 1;
    return governed ? std::clamp(window, 1U, std::min(room, shm::max_window)) : window;
}

void set_depths(run_setup& s, u32 most) {
    for (stage_setup& st : s.stages) st.lanes = lanes_of(st, most);
    for (stage_setup& st : s.stages) st.window = 0;
    for (const ring_place at : s.rings()) s.stages[at.stage].ring(at.output).window = window_of(s, at, most);
}

bool within_limits(const run_setup& s) {
    const ring::plan p = plan_of(s);
    u32 jobs = 0;
    for (const ring::stage_plan& st : p.stages) jobs += 2 * st.in_flight * st.instances;
    for (const auto [k, output] : s.rings())
        if (ring::derived_window(p, k, output) > shm::max_window ||
            ring::derived_slots(p, k, output) > shm::max_slots)
            return false;
    return jobs <= shm::max_jobs;
}

struct memory_place {
    std::string name;  ///< "cuda:0", "the host"
    u64 taken = 0, there = ~u64{0};
    memory_item largest;
};

/// The key is the uuid of a GPU; "": the host.
std::map<std::string, memory_place> places_of(const run_setup& s, const free_memory& memory) {
    std::map<std::string, memory_place> out;
    std::vector<memory_item> all = plan_memory(s);
    const std::vector<memory_item> extra = plan_extra_memory(s);
    all.insert(all.end(), extra.begin(), extra.end());
    for (const memory_item& m : all) {
        const bool host = m.choice.kind == device::memory_kind::memfd;
        memory_place& p = out[host ? "" : m.choice.device.uuid];
        if (p.name.empty()) {
            const auto known = memory.gpu.find(m.choice.device.uuid);
            p.name =
                host ? (memory.host_bound.empty() ? "the host" : "the host, of which " + memory.host_bound)
                     : fmt::format("cuda:{}", m.choice.device.ordinal);
            p.there = host ? memory.host : known == memory.gpu.end() ? ~u64{0} : known->second;
        }
        p.taken += m.bytes;
        if (m.bytes > p.largest.bytes) p.largest = m;
    }
    return out;
}

/// Returns the first place where more than 1/parts of the free memory is taken; null: there is none.
const memory_place* crowded(const std::map<std::string, memory_place>& all, u64 parts) {
    for (const auto& [uuid, p] : all)
        if (p.taken > p.there / parts) return &p;
    return nullptr;
}

bool has_auto(const run_setup& s) {
    const std::vector<ring_place> rings = s.rings();
    return std::any_of(s.stages.begin(), s.stages.end(),
                       [](const stage_setup& st) { return !st.spec.in_flight; }) ||
           std::any_of(rings.begin(), rings.end(),
                       [&](ring_place at) { return !s.stages[at.stage].ring(at.output).link.window; });
}

/// Returns the index of the GPU with this uuid among the run's GPUs, which are counted in the order of the
/// stages and their instances.
u32 token_of(const run_setup& s, const std::string& uuid) {
    std::vector<std::string> seen;
    for (const stage_setup& st : s.stages) {
        for (u32 k = 0; on_gpu(st) && k < st.spec.instances; ++k) {
            const std::string& each = st.device_of(k).uuid;
            if (std::find(seen.begin(), seen.end(), each) == seen.end()) seen.push_back(each);
        }
    }
    const auto at = static_cast<u32>(std::find(seen.begin(), seen.end(), uuid) - seen.begin());
    return at < shm::max_turns ? at : shm::none;
}

}  // namespace

free_memory free_memory_of(const machine_offer& machine) {
    free_memory m;
    m.host = device::available_host_bytes();
    if (const auto group = cgroups::of().memory(); group && group->left() <= m.host)
        m.host_bound = fmt::format("{} allows {}", group->file, human_bytes(group->limit));
    for (const gpu_offer& g : machine.gpus) m.gpu[g.id.uuid] = g.free_bytes;
    return m;
}

void choose_depths(run_setup& s, const free_memory& memory) {
    const bool any_gpu = std::any_of(s.stages.begin(), s.stages.end(), on_gpu);
    const u32 first = s.latency == latency_kind::low ? lanes_for_low : any_gpu ? lanes_on_gpu : lanes_on_cpu;
    u32 most = first;
    std::string why;
    for (;; --most) {
        set_depths(s, most);
        if (!has_auto(s)) return;
        const auto places = places_of(s, memory);
        const memory_place* full = crowded(places, share);
        if (full != nullptr && why.empty())
            why = fmt::format("{} of the {} free on {}, and rings and assets may use half of that",
                              human_bytes(full->taken), human_bytes(full->there), full->name);
        if (most == 1 || (within_limits(s) && full == nullptr)) break;
    }
    s.depth_reason = fmt::format("latency \"{}\"", word_of(latency_words, s.latency));
    s.depth_lowered = most < first;
    if (s.depth_lowered)
        s.depth_reason += fmt::format(": {} frames in flight, for {} would take {}", most, first,
                                      why.empty() ? "more buffers than a ring has" : why);
}

void require_room(const run_setup& s, const free_memory& memory) {
    const auto places = places_of(s, memory);
    const memory_place* full = crowded(places, 1);
    if (full == nullptr) return;
    const memory_item& m = full->largest;
    std::string largest = fmt::format("{} alone {}", m.name, human_bytes(m.bytes));
    std::string where = s.file;
    if (!m.asset && !m.extra) {
        const auto [k, output] = s.rings().at(m.index);
        const ring::plan p = plan_of(s);
        const stage_setup& st = s.stages[k];
        const ring_setup& r = st.ring(output);
        largest += fmt::format(": {} buffers of {} for in_flight = {} and window = {}",
                               ring::derived_slots(p, k, output), human_bytes(r.slot_bytes),
                               p.stages[k].in_flight, ring::derived_window(p, k, output));
        where = (r.link.window ? r.link.key_at.at("window") : st.spec.position_of("in_flight")).text();
    }
    throw config_error(fmt::format(
        "{}: rings and assets need {} of memory on {} ({}), but {} are free there: lower in_flight, window, "
        "instances or the frames' size, or leave in_flight and window to \"auto\"",
        where, human_bytes(full->taken), full->name, largest, human_bytes(full->there)));
}

namespace {

/// Describes the GPU contexts on the GPU of one instance of `own`: their number, and the stages whose work
/// runs in them.
struct sharers {
    u32 contexts = 0;
    std::vector<u32> stages;
};
sharers sharers_of(const run_setup& s, const stage_setup& own, u32 instance) {
    sharers out;
    bool domain = false;
    const std::string& uuid = own.device_of(instance).uuid;
    for (u32 k = 0; on_gpu(own) && k < s.stages.size(); ++k) {
        const stage_setup& st = s.stages[k];
        const u32 there = st.instances_on(uuid);
        if (!on_gpu(st) || there == 0) continue;
        domain = domain || st.mps;
        if (!st.mps) out.contexts += there;
        if (!st.spec.latest()) out.stages.push_back(k);
    }
    out.contexts += domain ? 1 : 0;
    return out;
}

const char* sharing_of(const stage_setup& own, const sharers& with) {
    return !on_gpu(own) ? "cpu" : own.mps ? "overlap" : with.contexts > 1 ? "turns" : "alone";
}

/// If the GPU is saturated, taking turns halves the time of a frame. In a run with low latency, which has two
/// frames in flight, passing a turn on costs more time than the turn saves. So a balanced run uses turns, and
/// other runs use turns only if the file specifies the number of frames in flight.
bool takes_turns(const run_setup& s, const stage_setup& own, u32 instance) {
    if (!s.turn_frames && s.latency != latency_kind::balanced) return false;
    return s.turn_frames != 0U && !own.spec.latest() &&
           std::string_view(sharing_of(own, sharers_of(s, own, instance))) == "turns";
}

}  // namespace

std::string idle_turns(const run_setup& s) {
    if (s.turn_frames.value_or(0) == 0) return "";
    bool overlap = false, gpu = false;
    for (const stage_setup& st : s.stages) {
        for (u32 k = 0; k < st.spec.instances; ++k)
            if (takes_turns(s, st, k)) return "";
        overlap = overlap || st.mps;
        gpu = gpu || on_gpu(st);
    }
    return fmt::format("turns = {} has no effect in this run: {}", *s.turn_frames,
                       overlap ? "in an MPS domain stages overlap on the GPU"
                       : gpu   ? "no two contexts of the run share a GPU"
                               : "none of its stages runs on a GPU");
}

json depth_rule_of(const run_setup& s, u32 stage, u32 instance) {
    const stage_setup& own = s.stages[stage];
    const sharers with = sharers_of(s, own, instance);
    return {{"latency", word_of(latency_words, s.latency)},
            {"sharing", sharing_of(own, with)},
            {"lanes_given", own.spec.in_flight.has_value()},
            {"window_given", own.link.window.has_value()},
            {"contexts", with.contexts},
            {"token", takes_turns(s, own, instance) ? token_of(s, own.device_of(instance).uuid) : shm::none},
            {"turn_frames", s.turn_frames.value_or(0)},
            {"turn_stages", with.stages}};
}

json depths_json(const run_setup& s) {
    json out = json::object();
    for (const stage_setup& st : s.stages) {
        json& row = out[st.spec.name] = {{"lanes", st.lanes}, {"window", st.window}};
        if (st.spec.standby_auto) row["standby"] = st.spec.standby;
    }
    for (const auto [k, output] : s.rings())
        if (output != 0) out[s.stages[k].ring_name(output)] = {{"window", s.stages[k].ring(output).window}};
    out[""] = s.depth_reason;
    return out;
}

void restore_depths(const json& depths, run_setup& s) {
    for (stage_setup& st : s.stages) {
        const json d = depths.value(st.spec.name, json::object());
        st.lanes = d.value("lanes", st.lanes);
        st.window = d.value("window", st.window);
        // the memory that is free now lacks that of the standbys that exist
        if (st.spec.standby_auto) st.spec.standby = d.value("standby", st.spec.standby);
        for (u32 o = 1; o < st.outputs(); ++o)
            st.ring(o).window =
                depths.value(st.ring_name(o), json::object()).value("window", st.ring(o).window);
    }
    s.depth_reason = depths.value("", s.depth_reason);
}

}  // namespace carousel::supervisor
