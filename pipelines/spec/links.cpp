#include "spec/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/user_input.hpp"
#include "shm/control_block.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

std::vector<std::string> names_in(const stage_description& d) {
    std::vector<std::string> names;
    for (u32 k = 0; k < d.outputs(); ++k) names.push_back(d.ring(k).output);
    return names;
}

/// Returns the name that a pipeline file uses for the ring.
std::string shown_ring(const stage_description& d, u32 output) {
    return output == 0 && !d.is_sink() ? d.stage : d.stage + "." + d.ring(output).output;
}

void check_readers_of(const pipeline& p, u32 stage, u32 output, const std::vector<stage_description>& all) {
    const stage_spec& s = p.stages[stage];
    const output_spec& o = all[stage].ring(output);
    const std::string ring = shown_ring(all[stage], output);
    u32 blocking = 0, latest = 0, skipping = 0;
    for (std::size_t k = 0; k < all.size(); ++k)
        for (std::size_t i = 0; i < all[k].input_outputs.size(); ++i)
            if (p.stages[k].input_indices[i] == stage && all[k].input_outputs[i] == output) {
                ++(p.stages[k].latest() ? latest : blocking);
                skipping += p.stages[k].skips() ? 1 : 0;
            }
    const bool is_state = all[stage].state && output + 1 == all[stage].outputs();
    if (blocking + latest == 0 && !is_state)
        refuse(s.at, fmt::format("stage \"{}\" produces \"{}\" ({}), which no stage reads; add \"{}\" to the "
                                 "inputs of a sink, or remove the output",
                                 s.name, o.output, o.format.value("type", "of no type"), ring));
    if (blocking == 0 && !is_state)
        refuse(s.at, fmt::format("\"{}\" is read only by latest readers, which may skip frames; at least one "
                                 "reader must be blocking",
                                 ring));
    if (blocking == skipping && !is_state)
        refuse(s.at,
               fmt::format(
                   "every stage that reads \"{}\" may miss frames (vacant = \"skip\"{}); at least one must "
                   "read all of them",
                   ring, latest > 0 ? ", or latest" : ""));
    latest += sampled_members(p, all, stage, output);
    if (blocking > shm::max_blocking || latest > shm::max_latest)
        refuse(s.at, fmt::format("\"{}\" is read by {} blocking and {} latest stages (each instance with a "
                                 "sampled input is one); at most {} and {}",
                                 ring, blocking, latest, shm::max_blocking, shm::max_latest));
    if (ring.size() > max_name)
        refuse(s.position_of("name"),
               fmt::format("the ring \"{}\" would have a name of {} characters; at most {}", ring,
                           ring.size(), max_name));
}

void check_twice(const stage_spec& s, const stage_description& d) {
    std::set<std::pair<u32, u32>> seen;
    for (std::size_t i = 0; i < d.input_outputs.size(); ++i)
        if (!seen.insert({s.input_indices[i], d.input_outputs[i]}).second)
            refuse(
                s.position_of("inputs"),
                fmt::format("stage \"{}\" names an input twice, because \"{}\" is the first output of \"{}\"",
                            s.name, s.inputs[i], ring_name_of(s.inputs[i]).stage));
}

void check_link(const std::string& name, const link_spec& link, const std::vector<stage_description>& all) {
    const ring_name ring = ring_name_of(name);
    if (ring.output.empty()) return;
    const auto d = std::find_if(all.begin(), all.end(),
                                [&](const stage_description& each) { return each.stage == ring.stage; });
    if (d == all.end()) return;
    const std::vector<std::string> names = names_in(*d);
    const auto at = std::find(names.begin(), names.end(), ring.output);
    if (at == names.end())
        refuse(link.at, fmt::format("[link.{}]: stage \"{}\" has no output \"{}\"; its outputs: {}{}", name,
                                    ring.stage, ring.output, output_names(*d),
                                    did_you_mean_clause(ring.output, names)));
    if (at == names.begin() && !d->is_sink())
        refuse(link.at,
               fmt::format(
                   "[link.{}]: \"{}\" is the first output of \"{}\", so the section of its ring is [link.{}]",
                   name, ring.output, ring.stage, ring.stage));
}

const std::string sampled_key = "sampled";

void require_taker(const stage_spec& s) {
    if (s.sampled_inputs.empty()) return;
    const source_position& at = s.position_of(sampled_key);
    if (s.sampled_inputs.size() > shm::max_sampled_inputs)
        refuse(at, fmt::format("stage \"{}\" has {} sampled inputs; at most {}", s.name,
                               s.sampled_inputs.size(), shm::max_sampled_inputs));
    if (s.latest())
        refuse(at, fmt::format("stage \"{}\" reads with group = \"latest\" and has sampled inputs; only "
                               "stages that get every frame of their inputs can have sampled inputs",
                               s.name));
    if (s.is_port())
        refuse(at, fmt::format("port \"{}\": sampled is only for stages whose programs the run starts; a "
                               "program at a port reads the newest frames with run.latest(...)",
                               s.name));
}

u32 sampled_stage(const pipeline& p, const stage_spec& s, const std::string& written) {
    const source_position& at = s.position_of(sampled_key);
    const ring_name ring = ring_name_of(written);
    if (ring.output.empty() && ring.stage != written)
        refuse(at,
               fmt::format("stage \"{}\" samples \"{}\"; expected STAGE or STAGE.OUTPUT", s.name, written));
    if (ring.stage == s.name)
        refuse(at, fmt::format("stage \"{}\" names itself as its sampled input", s.name));
    if (const stage_spec* from = p.find(ring.stage)) return static_cast<u32>(from - p.stages.data());
    std::vector<std::string> names;
    for (const stage_spec& each : p.stages) names.push_back(each.name);
    refuse(at, fmt::format("stage \"{}\" samples \"{}\", which is not a stage; the stages are {}{}", s.name,
                           ring.stage, fmt::join(names, ", "), did_you_mean_clause(ring.stage, names)));
}

}  // namespace

ring_name ring_name_of(const std::string& written) {
    const std::size_t dot = written.find('.');
    if (dot == std::string::npos) return {written, ""};
    return {written.substr(0, dot), written.substr(dot + 1)};
}

std::string output_names(const stage_description& d) {
    std::vector<std::string> names = names_in(d);
    if (names.empty()) return "none";
    for (std::string& name : names)
        if (name.empty()) name = "one without a name";
    return fmt::format("{}", fmt::join(names, ", "));
}

namespace {

/// "tracker" is not a ring if the stage has only a ring of states, "tracker.state".
void refuse_states_without_name(const source_position& at, const stage_spec& reader, const char* verb,
                                const stage_description& from) {
    if (from.outputs() == 0 || !from.is_sink()) return;
    refuse(at, fmt::format("stage \"{0}\" {1} \"{2}\", which has no output in addition to its state: write "
                           "\"{2}.{3}\" for that",
                           reader.name, verb, from.stage, from.output));
}

}  // namespace

u32 output_read(const stage_spec& reader, std::size_t input, const stage_description& from) {
    const std::string& name = reader.input_outputs.at(input);
    if (name.empty()) {
        refuse_states_without_name(reader.position_of("inputs"), reader, "reads", from);
        return 0;
    }
    const std::vector<std::string> names = names_in(from);
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
        refuse(
            reader.position_of("inputs"),
            fmt::format("stage \"{}\" reads \"{}\", but stage \"{}\" has no output \"{}\"; its outputs: {}{}",
                        reader.name, reader.inputs[input], from.stage, name, output_names(from),
                        did_you_mean_clause(name, names)));
    return static_cast<u32>(at - names.begin());
}

void check_outputs(const pipeline& p, const std::vector<stage_description>& all) {
    u32 rings = 0;
    for (u32 k = 0; k < all.size(); ++k) {
        check_twice(p.stages[k], all[k]);
        rings += all[k].outputs();
        if (rings > shm::max_links)
            refuse(p.stages[k].at, fmt::format("{} output rings of all stages up to this one; at most {}",
                                               rings, shm::max_links));
        for (u32 o = 0; o < all[k].outputs(); ++o) check_readers_of(p, k, o, all);
    }
    for (const auto& [name, link] : p.links) check_link(name, link, all);
}

u32 sampled_output(const stage_spec& s, std::size_t sampled, const stage_description& from) {
    const std::string& name = s.sampled_outputs.at(sampled);
    const source_position& at = s.position_of(sampled_key);
    std::vector<std::string> names;
    for (u32 o = 0; o < from.outputs(); ++o) names.push_back(from.ring(o).output);
    if (name.empty()) {
        refuse_states_without_name(at, s, "samples", from);
        return 0;
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        refuse(at,
               fmt::format(
                   "stage \"{}\" samples \"{}\", but stage \"{}\" has no output \"{}\"; its outputs: {}{}",
                   s.name, s.sampled_inputs[sampled], from.stage, name, output_names(from),
                   did_you_mean_clause(name, names)));
    return static_cast<u32>(found - names.begin());
}

void resolve_sampled_inputs(pipeline& p) {
    for (stage_spec& s : p.stages) {
        require_taker(s);
        s.sampled_indices.clear();
        s.sampled_outputs.clear();
        for (const std::string& written : s.sampled_inputs) {
            const u32 from = sampled_stage(p, s, written);
            s.sampled_indices.push_back(from);
            s.sampled_outputs.push_back(ring_name_of(written).output);
            p.stages[from].has_output = true;
        }
    }
}

u32 sampled_members(const pipeline& p, const std::vector<stage_description>& all, u32 stage, u32 output) {
    u32 members = 0;
    for (std::size_t k = 0; k < all.size(); ++k)
        for (std::size_t i = 0; i < all[k].sampled_outputs.size(); ++i)
            if (p.stages[k].sampled_indices[i] == stage && all[k].sampled_outputs[i] == output)
                members += p.stages[k].instances;
    return members;
}

void check_sampled_inputs(const pipeline& p, std::vector<stage_description>& all) {
    for (std::size_t k = 0; k < all.size(); ++k) {
        const stage_spec& s = p.stages[k];
        if (s.sampled_inputs.empty()) continue;
        const source_position& at = s.position_of(sampled_key);
        if (!all[k].accepts_sampled_inputs)
            refuse(at, fmt::format("stage \"{}\" accepts no sampled inputs: its program does not declare "
                                   "them in configure() (description::accepts_sampled_inputs; in Python: the "
                                   "argument frame). Remove the key sampled",
                                   s.name));
        std::set<std::pair<u32, u32>> seen;
        for (std::size_t i = 0; i < s.sampled_inputs.size(); ++i) {
            const u32 output = sampled_output(s, i, all[s.sampled_indices[i]]);
            all[k].sampled_outputs.push_back(output);
            if (!seen.insert({s.sampled_indices[i], output}).second)
                refuse(at, fmt::format("stage \"{}\" names \"{}\" as its sampled input twice", s.name,
                                       s.sampled_inputs[i]));
        }
    }
}

}  // namespace carousel::supervisor
