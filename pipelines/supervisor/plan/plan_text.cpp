#include "supervisor/plan/plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frame/frame_format.hpp"
#include "os/table.hpp"
#include "spec/fallback_check.hpp"
#include "spec/pipeline_keys.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/guard_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/standby_plan.hpp"

namespace carousel::supervisor {
using nlohmann::json;
namespace {

std::string name_with_count(const std::string& name, u32 instances) {
    return instances > 1 ? fmt::format("{} x {}", name, instances) : name;
}

std::string place_of(const memory_choice& c, const std::vector<stage_setup>& stages) {
    if (c.kind == device::memory_kind::memfd) return "memfd (host)";
    const auto on = std::find_if(stages.begin(), stages.end(),
                                 [&](const stage_setup& s) { return s.device.uuid == c.device.uuid; });
    return fmt::format("{} ({})", device::name_of(c.kind), on == stages.end() ? "gpu" : on->device_name);
}

std::string readers_of(const run_setup& s, ring_place at) {
    std::string text;
    for (const stage_setup& r : s.stages) {
        if (!r.reads(at.stage, at.output)) continue;
        text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", r.spec.name,
                            word_of(group_words, r.spec.group),
                            r.spec.optional  ? ", optional"
                            : r.spec.skips() ? ", skipped while vacant"
                                             : "");
    }
    for (const stage_setup& r : s.stages)
        if (r.samples(at.stage, at.output))
            text += fmt::format("{}{} (latest)", text.empty() ? "" : ", ", r.spec.name);
    return text;
}

std::string reads_text(const stage_spec& s) {
    std::string text = fmt::format("{}", fmt::join(s.inputs, ", "));
    for (const std::string& sampled : s.sampled_inputs)
        text += fmt::format("{}{} (latest)", text.empty() ? "" : ", ", sampled);
    return text;
}

u64 sum_of_slots(const stage_description& d) {
    u64 sum = 0;
    for (u32 o = 0; o < d.outputs(); ++o) sum += d.ring(o).slot_bytes;
    return sum;
}

json decided_json(const pipeline& p, const stage_spec& s, const stage_description& d) {
    json makes = json::array();
    for (const asset_spec& a : d.makes) makes.push_back({{"name", a.name}, {"bytes", a.bytes}});
    json j = values_of(s);
    j.update({{"program", d.program},
              {"python", d.python},
              {"settings", s.settings},
              {"format", d.format},
              {"slot_bytes", d.slot_bytes},
              {"makes", makes},
              {"uses", d.uses},
              {"commits_on_host", d.commits_on_host},
              {"ends", d.ends},
              {"accepts_sampled_inputs", d.accepts_sampled_inputs},
              {"forwards_frames", d.forwards_frames},
              {"writable_inputs", d.writable_inputs},
              {"bit_equal", d.bit_equal}});
    if (const auto link = p.links.find(s.name); link != p.links.end()) j["link"] = values_of(link->second);
    if (!d.output.empty()) j["output"] = d.output;
    for (const output_spec& o : d.more) {
        json other{{"output", o.output}, {"format", o.format}, {"slot_bytes", o.slot_bytes}};
        const auto link = p.links.find(s.name + "." + o.output);
        other["link"] = values_of(link != p.links.end() ? link->second : link_spec());
        j["more_outputs"].push_back(std::move(other));
    }
    return j;
}

/// "in flight: geometry 16, vertex 16; latency "balanced"; a stage uses up to this number, adapted while it
/// runs".
std::string depth_text(const run_setup& s, const ring::plan& p) {
    std::string text = "in flight:";
    for (u32 k = 0; k < p.stages.size(); ++k)
        text += fmt::format("{} {} {}", k == 0 ? "" : ",", p.stages[k].name, p.stages[k].in_flight);
    if (!s.depth_reason.empty())
        text += fmt::format("; {}; a stage uses up to this number, adapted while it runs", s.depth_reason);
    if (const std::string idle = idle_turns(s); !idle.empty()) text += "; " + idle;
    if (const std::string standbys = standby_text(s); !standbys.empty()) text += "\n" + standbys;
    return text;
}

json parameters_json(const parameter_plan& plan) {
    return plan.schema ? json{{"type", plan.schema.type}, {"values", plan.schema.values_json(plan.values)}}
                       : json();
}

}  // namespace

std::string format_text(const json& format) {
    if (format.is_null()) return "-";
    try {
        return ring::frame_format::from_json(format.dump()).describe();
    } catch (const error&) {
        return format.value("type", "?");
    }
}

std::string plan_text(const pipeline& p, const std::vector<stage_description>& all, std::size_t width) {
    table t({"STAGE", "READS", "DEVICE", ">IN FLIGHT", ">SLOT"});
    for (std::size_t k = 0; k < all.size(); ++k) {
        const stage_spec& s = p.stages[k];
        t.add({name_with_count(s.name, s.instances), reads_text(s).empty() ? "-" : reads_text(s),
               s.devices.empty() ? s.device : fmt::format("{}", fmt::join(s.devices, "+")),
               s.in_flight ? std::to_string(*s.in_flight) : "auto",
               all[k].slot_bytes == 0 ? "-" : human_bytes(sum_of_slots(all[k]))});
    }
    t.fit(width, {{"READS"}, {"STAGE", 8}});
    const std::string head = fmt::format("{}: pipeline \"{}\", {} stages, {} x {}: valid", p.file, p.name,
                                         p.stages.size(), p.width, p.height);
    std::string text = wrapped(head, width, 2) + "\n" + t.text();
    for (std::size_t k = 0; k < all.size(); ++k) {
        const std::string does = p.stages[k].is_port() ? "is a port: a program opens it"
                                 : all[k].python.empty()
                                     ? "runs " + all[k].program
                                     : fmt::format("runs {} with {}", all[k].program, all[k].python);
        text += "\n" + wrapped(fmt::format("{} {}", p.stages[k].name, does), width, 4) + "\n";
        if (const std::string reads = reads_text(p.stages[k]); !t.has("READS") && !reads.empty())
            text += wrapped("  reads " + reads, width, 4) + "\n";
        if (!all[k].format.is_null())
            for (u32 o = 0; o < all[k].outputs(); ++o) {
                const output_spec& out = all[k].ring(o);
                const std::string name = out.output.empty() ? "" : out.output + ": ";
                text += wrapped("  writes " + name + format_text(out.format), width, 4) + "\n";
            }
    }
    if (const std::string fallback = fallback_text(p, all); !fallback.empty())
        text += "\n" + wrapped(fallback, width, 4) + "\n";
    if (const parameter_plan plan = plan_parameters(p, all); plan.schema)
        text += "\n" + wrapped("parameters: " + plan.schema.describe(), width, 4) + "\n";
    return text;
}

json plan_json(const pipeline& p, const std::vector<stage_description>& all) {
    json stages = json::array();
    for (std::size_t k = 0; k < all.size(); ++k) stages.push_back(decided_json(p, p.stages[k], all[k]));
    json about = values_of(static_cast<const pipeline_spec&>(p));
    about["file"] = p.file;
    return {{"ok", true},
            {"pipeline", about},
            {"parameters", parameters_json(plan_parameters(p, all))},
            {"stages", stages}};
}

std::string placement_text(const run_setup& s, std::size_t width) {
    const ring::plan plan = plan_of(s);
    const std::vector<ring_place> rings = s.rings();
    std::string devices;
    for (const stage_setup& st : s.stages)
        devices += fmt::format("{}{} on {}", devices.empty() ? "" : ", ", st.spec.name, st.device_name);
    table t({"MEMORY", "READERS", ">SLOTS", ">WINDOW", ">SLOT", ">BYTES", "KIND"});
    u64 sum = 0;
    std::string readers;
    for (const memory_item& m : plan_memory(s)) {
        sum += m.bytes;
        if (m.asset) {
            t.add({m.name, "", "", "", "", human_bytes(m.bytes), place_of(m.choice, s.stages)});
            continue;
        }
        const auto [k, output] = rings.at(m.index);
        const std::string read_by = readers_of(s, rings.at(m.index));
        readers += wrapped(fmt::format("{} is read by {}", m.name, read_by), width, 4) + "\n";
        t.add({m.name, read_by, std::to_string(ring::derived_slots(plan, k, output)),
               std::to_string(ring::derived_window(plan, k, output)),
               human_bytes(s.stages[k].ring(output).slot_bytes), human_bytes(m.bytes),
               place_of(m.choice, s.stages)});
    }
    t.fit(width, {{"READERS"}, {"WINDOW"}, {"MEMORY", 12}});
    const std::string end = s.end == ring::end_unknown ? "runs until `carousel down` or Ctrl-C"
                                                       : fmt::format("ends after {} frames", s.end);
    const std::string last =
        fmt::format("memory of rings and assets: {}; {}; {}", human_bytes(sum), end,
                    s.report_path.empty() ? std::string("no report") : "report to " + s.report_path);
    return fmt::format("\n{}\n\n{}{}\n{}\n{}\n{}\n{}\n{}\n", wrapped("devices: " + devices, width, 2),
                       t.text(), t.has("READERS") ? "" : "\n" + readers,
                       wrapped(depth_text(s, plan), width, 2), wrapped(guard_text(s), width, 2),
                       wrapped(output_guard_text(s), width, 2), wrapped(block_guard_text(s), width, 2),
                       wrapped(last, width, 2));
}

std::vector<run::ps_link> links_of(const run_setup& s) {
    const ring::plan plan = plan_of(s);
    std::vector<run::ps_link> links;
    const std::vector<ring_place> rings = s.rings();
    for (const memory_item& m : plan_memory(s)) {
        if (m.asset) continue;
        const auto [k, output] = rings.at(m.index);
        const ring_setup& of = s.stages[k].ring(output);
        run::ps_link l;
        l.stage = s.stages[k].ring_name(output);
        l.format = of.format.value("type", "?");
        l.memory = device::name_of(m.choice.kind);
        l.slots = ring::derived_slots(plan, k, output);
        l.window = ring::derived_window(plan, k, output);
        l.slot_bytes = of.slot_bytes;
        l.guard = m.guard.name();
        l.output = of.output;
        for (const stage_setup& r : s.stages)
            if (r.reads(k, output))
                l.readers.push_back({r.spec.name, word_of(group_words, r.spec.group), r.spec.is_port()});
        for (const stage_setup& r : s.stages)
            if (r.samples(k, output))
                l.readers.push_back({r.spec.name, word_of(group_words, group_kind::latest)});
        links.push_back(std::move(l));
    }
    return links;
}

}  // namespace carousel::supervisor
