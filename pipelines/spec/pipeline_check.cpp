#include "spec/pipeline_document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/user_input.hpp"
#include "ring/topology.hpp"
#include "shm/control_block.hpp"
#include "spec/links.hpp"
#include "spec/pipeline_file.hpp"
#include "spec/programs.hpp"
#include "spec/special_stages.hpp"

namespace carousel::supervisor {
namespace {

/// the lowest value that "auto" can choose; all other limits must hold with this value
constexpr u32 fewest_in_flight = 1;

u32 index_of(const pipeline& p, const std::string& name) {
    const auto at =
        std::find_if(p.stages.begin(), p.stages.end(), [&](const stage_spec& s) { return s.name == name; });
    return at == p.stages.end() ? shm::none : static_cast<u32>(at - p.stages.begin());
}

std::vector<std::string> names_of(const pipeline& p) {
    std::vector<std::string> names;
    for (const stage_spec& s : p.stages) names.push_back(s.name);
    return names;
}

void check_names(const pipeline& p) {
    for (std::size_t k = 0; k < p.stages.size(); ++k) {
        const stage_spec& s = p.stages[k];
        const stage_spec& first = p.stages[index_of(p, s.name)];
        if (&first != &s)
            refuse(s.position_of("name"),
                   fmt::format("there is already a stage \"{}\" (at {}); give every stage its own name",
                               s.name, first.position_of("name").text()));
    }
}

void resolve_inputs(pipeline& p) {
    for (stage_spec& s : p.stages) {
        const source_position& at = s.position_of("inputs");
        if (s.inputs.size() > shm::max_inputs)
            refuse(at, fmt::format("stage \"{}\" has {} inputs; at most {}", s.name, s.inputs.size(),
                                   shm::max_inputs));
        s.input_indices.clear();
        s.input_outputs.clear();
        for (auto each = s.inputs.begin(); each != s.inputs.end(); ++each) {
            const std::string& input = *each;
            const ring_name ring = ring_name_of(input);
            if (ring.output.empty() && ring.stage != input)
                refuse(at, fmt::format("stage \"{}\" reads \"{}\"; expected STAGE or STAGE.OUTPUT", s.name,
                                       input));
            if (ring.stage == s.name)
                refuse(at, fmt::format("stage \"{}\" names itself as its input", s.name));
            const u32 index = index_of(p, ring.stage);
            if (index == shm::none)
                refuse(at, fmt::format("stage \"{}\" reads \"{}\", which is not a stage; the stages are {}{}",
                                       s.name, ring.stage, fmt::join(names_of(p), ", "),
                                       did_you_mean_clause(ring.stage, names_of(p))));
            if (std::find(s.inputs.begin(), each, input) != each)
                refuse(at, fmt::format("stage \"{}\" names \"{}\" as its input twice", s.name, input));
            s.input_indices.push_back(index);
            s.input_outputs.push_back(ring.output);
            p.stages[index].has_output = true;
        }
    }
}

/// Returns "a -> b -> a", beginning with a stage that is upstream of itself.
std::string cycle_text(const pipeline& p, const std::vector<bool>& placed) {
    u32 at = 0;
    while (placed[at]) ++at;
    std::vector<u32> way;
    while (std::find(way.begin(), way.end(), at) == way.end()) {
        way.push_back(at);
        const auto& inputs = p.stages[at].input_indices;
        // finds an input stage that is not placed yet; every stage that is not placed has such an input
        at = *std::find_if(inputs.begin(), inputs.end(), [&](u32 i) { return !placed[i]; });
    }
    std::string text = p.stages[at].name;
    for (auto k = way.rbegin(); k != way.rend(); ++k) {
        text += " -> " + p.stages[*k].name;
        if (*k == at) break;
    }
    return text;
}

/// Returns the stages in an order in which producers precede consumers; apart from that, the file's order is
/// kept. A stage also comes after the stages that it samples, if possible.
std::vector<u32> order_of(const pipeline& p) {
    std::vector<u32> order;
    std::vector<bool> placed(p.stages.size());
    while (order.size() < p.stages.size()) {
        const std::size_t before = order.size();
        const auto all_placed = [&](const std::vector<u32>& stages) {
            return std::all_of(stages.begin(), stages.end(), [&](u32 i) { return placed[i]; });
        };
        u32 next = shm::none;
        for (u32 k = 0; k < p.stages.size(); ++k) {
            if (placed[k] || !all_placed(p.stages[k].input_indices)) continue;
            const bool whole = all_placed(p.stages[k].sampled_indices);
            if (whole || next == shm::none) next = k;
            if (whole) break;
        }
        if (next != shm::none) {
            placed[next] = true;
            order.push_back(next);
        }
        if (order.size() == before) {
            u32 first = 0;
            while (placed[first]) ++first;
            refuse(p.stages[first].position_of("inputs"),
                   fmt::format(
                       "the stages' inputs form a cycle: {}; frames can only flow from a source to a sink",
                       cycle_text(p, placed)));
        }
    }
    return order;
}

void reorder(pipeline& p, const std::vector<u32>& order) {
    std::vector<u32> place(order.size());
    for (u32 k = 0; k < order.size(); ++k) place[order[k]] = k;
    std::vector<stage_spec> stages;
    for (const u32 k : order) {
        stages.push_back(std::move(p.stages[k]));
        for (u32& input : stages.back().input_indices) input = place[input];
        for (u32& sampled : stages.back().sampled_indices) sampled = place[sampled];
    }
    p.stages = std::move(stages);
}

void check_groups(pipeline& p) {
    for (stage_spec& s : p.stages) {
        if (s.is_port()) check_port(s);
        if (!s.python.empty() && !is_python(s.run))
            refuse(s.position_of("python"),
                   fmt::format("stage \"{}\": python is only for stages in Python (run = \"NAME.py\"), but "
                               "this stage has run = \"{}\"; remove python",
                               s.name, s.run));
        if (s.inputs.empty() && !s.has_output)
            refuse(s.at, fmt::format("stage \"{}\" neither reads a stage nor is read by one; give it inputs, "
                                     "or add it to another stage's inputs",
                                     s.name));
        if (s.standby &&
            (s.restart != restart_policy::always || !s.prefix.empty() || s.group == group_kind::latest))
            refuse(
                s.position_of("standby"),
                fmt::format(
                    "stage \"{}\": standby = true needs restart = \"always\", no prefix and a blocking group",
                    s.name));
        if (s.optional && s.has_output)
            refuse(
                s.position_of("optional"),
                fmt::format("stage \"{}\" is read by others; optional = true is for stages without outputs",
                            s.name));
        if (s.every > 1 && (s.has_output || s.inputs.empty() || s.latest()))
            refuse(
                s.position_of("every"),
                fmt::format("stage \"{}\": every = {} is for stages with inputs, without outputs, and with "
                            "group = \"blocking\": in an output ring, the frames that the stage skips would "
                            "be missing",
                            s.name, s.every));
        if (s.group != group_kind::latest) continue;
        const source_position& at = s.position_of("group");
        if (s.inputs.empty())
            refuse(at,
                   fmt::format("stage \"{}\" reads nothing; group = \"latest\" is for stages with an input",
                               s.name));
        if (s.has_output)
            refuse(at,
                   fmt::format("stage \"{}\" is read by others; only stages without outputs may have group = "
                               "\"latest\", because a skipped frame would be a gap in the output ring",
                               s.name));
        if (s.instances > 1)
            refuse(at,
                   fmt::format("stage \"{}\" has instances = {}; a latest reader can have only one process",
                               s.name, s.instances));
        if (s.inputs.size() > 1)
            refuse(at, fmt::format("stage \"{}\" has {} inputs; a latest reader can have only one", s.name,
                                   s.inputs.size()));
    }
}

/// Refuses a stage whose output is read by other stages only as a sampled input.
[[noreturn]] void refuse_unwaited(const pipeline& p, u32 stage) {
    const auto samples = [&](const stage_spec& s) {
        return std::find(s.sampled_indices.begin(), s.sampled_indices.end(), stage) !=
               s.sampled_indices.end();
    };
    const auto reader = std::find_if(p.stages.begin(), p.stages.end(), samples);
    const std::string& name = p.stages[stage].name;
    refuse((reader != p.stages.end() ? *reader : p.stages[stage]).position_of("sampled"),
           fmt::format("\"{}\" is only a sampled input; a stage must also read it as one of its inputs, or "
                       "every frame could be skipped",
                       name));
}

/// True if other stages read nothing of the stage but that output, as a sampled input.
bool is_only_sampled_as(const pipeline& p, u32 stage, const std::string& output) {
    bool sampled = false;
    for (const stage_spec& s : p.stages) {
        for (const u32 i : s.input_indices)
            if (i == stage) return false;
        for (std::size_t i = 0; i < s.sampled_indices.size(); ++i) {
            if (s.sampled_indices[i] != stage) continue;
            if (s.sampled_outputs[i] != output) return false;
            sampled = true;
        }
    }
    return sampled;
}

void check_readers(const pipeline& p) {
    for (u32 k = 0; k < p.stages.size(); ++k) {
        const stage_spec& s = p.stages[k];
        u32 blocking = 0, latest = 0;
        bool by_name = false;  // each of the stage's outputs has its own readers, which links.cpp counts
        for (const stage_spec& reader : p.stages) {
            const auto& inputs = reader.input_indices;
            const auto at = std::find(inputs.begin(), inputs.end(), k);
            if (at == inputs.end()) continue;
            for (std::size_t i = 0; i < inputs.size(); ++i)
                by_name = by_name || (inputs[i] == k && !reader.input_outputs[i].empty());
            ++(reader.group == group_kind::latest ? latest : blocking);
        }
        if (is_only_sampled_as(p, k, "state")) continue;  // links.cpp knows which stages have a state
        if (blocking + latest == 0 && s.has_output) refuse_unwaited(p, k);
        if (by_name) continue;
        if (blocking > shm::max_blocking || latest > shm::max_latest)
            refuse(s.at,
                   fmt::format("stage \"{}\" is read by {} blocking and {} latest stages; at most {} and {}",
                               s.name, blocking, latest, shm::max_blocking, shm::max_latest));
        if (s.has_output && blocking == 0)
            refuse(s.at, fmt::format("\"{}\" is read only by latest readers, which may skip frames; at least "
                                     "one reader must be blocking",
                                     s.name));
    }
}

void check_limits(const pipeline& p) {
    u32 seats = 0, jobs = 0, sources = 0;
    for (const stage_spec& s : p.stages) {
        seats += s.instances;
        jobs += 2 * s.in_flight.value_or(fewest_in_flight) * s.instances;
        sources += s.inputs.empty() ? 1 : 0;
        if (seats > shm::max_seats)
            refuse(
                s.position_of("instances"),
                fmt::format("{} instances in all stages up to this one; at most {}", seats, shm::max_seats));
        if (jobs > shm::max_jobs)
            refuse(s.position_of("in_flight"),
                   fmt::format("in_flight x instances is {} in all stages up to this one; at most {}",
                               jobs / 2, shm::max_jobs / 2));
        if (sources > shm::max_sources)
            refuse(s.at, fmt::format("{} sources; at most {}", sources, shm::max_sources));
    }
}

void complete_links(pipeline& p) {
    for (const auto& [name, link] : p.links) {
        const std::string front = ring_name_of(name).stage;
        const stage_spec* s = p.find(front);
        if (s == nullptr)
            refuse(link.at,
                   fmt::format(
                       "[link.{}]: no stage \"{}\"; a link has the name of the stage that writes it: {}{}",
                       name, front, fmt::join(names_of(p), ", "), did_you_mean_clause(front, names_of(p))));
        if (!s->has_output && ring_name_of(name).output != "state")
            refuse(link.at,
                   fmt::format("[link.{}]: stage \"{}\" has no output ring, because no stage reads it", name,
                               front));
    }
    for (const stage_spec& s : p.stages) {
        if (!s.has_output) continue;
        auto [link, added] = p.links.try_emplace(s.name);
        if (added) link->second.at = s.at;
    }
}

/// If readers of the newest frame lease all spare slots of a ring, no frame moves, although no stage reports
/// a reason to wait. The supervisor would then consider the run stalled, and rebuild it.
void check_leases(const pipeline& p) {
    if (p.stall_timeout_ms == 0) return;
    for (const auto& [name, link] : p.links) {
        const u32 lease_ms = link.latest_lease_ms.value_or(p.latest_lease_ms);
        if (lease_ms < p.stall_timeout_ms) continue;
        source_position at = link.at;
        const auto use_place_of = [&](const auto& keys, const char* key) {
            const auto found = keys.find(key);
            if (found != keys.end()) at = found->second;
            return found != keys.end();
        };
        if (!use_place_of(link.key_at, "latest_lease_ms") && !use_place_of(p.key_at, "latest_lease_ms"))
            use_place_of(p.key_at, "stall_timeout_ms");
        refuse(at,
               fmt::format("the ring \"{}\" has latest_lease_ms = {}, and [pipeline] has "
                           "stall_timeout_ms = {}: a lease must be shorter, because a run whose slots are "
                           "leased for stall_timeout_ms is rebuilt; lower latest_lease_ms, raise "
                           "stall_timeout_ms, or set it to 0 (never)",
                           name, lease_ms, p.stall_timeout_ms));
    }
}

/// The number of a ring's buffers follows from its window and from the frames in flight at both ends; the
/// control block limits this number.
void check_rings(const pipeline& p) {
    ring::plan plan;
    for (const stage_spec& s : p.stages) {
        const auto link = p.links.find(s.name);
        plan.stages.push_back(stage_plan_of(s, link == p.links.end() ? link_spec{} : link->second));
        plan.stages.back().in_flight = s.in_flight.value_or(fewest_in_flight);
    }
    for (u32 k = 0; k < p.stages.size(); ++k) {
        const stage_spec& s = p.stages[k];
        if (!s.has_output) continue;
        const u32 window = ring::derived_window(plan, k), slots = ring::derived_slots(plan, k);
        if (window <= shm::max_window && slots <= shm::max_slots) continue;
        const link_spec& link = p.links.at(s.name);
        refuse(link.window ? link.key_at.at("window") : s.position_of("in_flight"),
               fmt::format("the output ring of \"{}\" needs a window of {} frames and {} buffers, but a ring "
                           "has at most {} frames and {} buffers; lower in_flight, instances or window",
                           s.name, window, slots, shm::max_window, shm::max_slots));
    }
    for (const auto& [name, link] : p.links) {
        const ring_name ring = ring_name_of(name);
        if (ring.output.empty() || !link.window) continue;  // topology.cpp checks a derived window
        const auto k = static_cast<u32>(p.find(ring.stage) - p.stages.data());
        ring::stage_plan& maker = plan.stages[k];
        maker.window = *link.window;
        maker.state = ring.output == "state";
        const u32 slots = ring::derived_slots(plan, k);
        if (slots <= shm::max_slots) continue;
        refuse(link.key_at.at("window"),
               fmt::format("the ring \"{}\" needs {} buffers, but a ring has at most {}; lower in_flight, "
                           "instances or window",
                           name, slots, shm::max_slots));
    }
}

}  // namespace

void check_and_wire(pipeline& p) {
    if (p.stages.empty())
        refuse({p.file, 0, 0, ""},
               "no stages; expected at least two [[stage]] sections, a source and a sink");
    if (p.stages.size() > shm::max_stages)
        refuse(p.stages[shm::max_stages].at,
               fmt::format("{} stages; at most {}", p.stages.size(), shm::max_stages));
    check_names(p);
    resolve_inputs(p);
    resolve_sampled_inputs(p);
    reorder(p, order_of(p));
    check_groups(p);
    check_readers(p);
    check_limits(p);
    complete_links(p);
    check_leases(p);
    check_rings(p);
}

}  // namespace carousel::supervisor
