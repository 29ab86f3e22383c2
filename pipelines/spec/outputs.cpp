#include "spec/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/user_input.hpp"
#include "shm/control_block.hpp"
#include "spec/pipeline_keys.hpp"
#include "spec/sampled_inputs.hpp"

namespace carousel::supervisor {
namespace {

std::vector<std::string> names_in(const stage_description& d) {
    std::vector<std::string> names;
    for (u32 k = 0; k < d.outputs(); ++k) names.push_back(d.ring(k).output);
    return names;
}

/// Returns the name by which a file reads the ring.
std::string shown_ring(const stage_description& d, u32 output) {
    return output == 0 ? d.stage : d.stage + "." + d.ring(output).output;
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
    if (blocking + latest == 0)
        refuse(s.at, fmt::format("stage \"{}\" produces \"{}\" ({}), which no stage reads; add \"{}\" to the "
                                 "inputs of a sink, or remove the output",
                                 s.name, o.output, o.format.value("type", "of no type"), ring));
    if (blocking == 0)
        refuse(s.at,
               fmt::format("every stage that reads \"{}\" reads as latest; at least one must be blocking, "
                           "or every frame could be skipped",
                           ring));
    if (blocking == skipping)
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
            refuse(s.position_of("inputs"),
                   fmt::format("stage \"{}\" names \"{}\" as its input, which is the first output of \"{}\", "
                               "twice",
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
    if (at == names.begin())
        refuse(link.at,
               fmt::format("[link.{}]: \"{}\" is the first output of \"{}\", whose ring is [link.{}]", name,
                           ring.output, ring.stage, ring.stage));
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

u32 output_read(const stage_spec& reader, std::size_t input, const stage_description& from) {
    const std::string& name = reader.input_outputs.at(input);
    if (name.empty()) return 0;
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

}  // namespace carousel::supervisor
