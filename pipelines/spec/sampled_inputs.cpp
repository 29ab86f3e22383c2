#include "spec/sampled_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/user_input.hpp"
#include "shm/control_block.hpp"
#include "spec/outputs.hpp"

namespace carousel::supervisor {
namespace {

const std::string sampled_key = "sampled";

void require_taker(const stage_spec& s) {
    if (s.sampled_inputs.empty()) return;
    const source_position& at = s.position_of(sampled_key);
    if (s.sampled_inputs.size() > shm::max_sampled_inputs)
        refuse(at, fmt::format("stage \"{}\" has {} sampled inputs; at most {}", s.name,
                               s.sampled_inputs.size(), shm::max_sampled_inputs));
    if (s.latest())
        refuse(at, fmt::format("stage \"{}\" reads with group = \"latest\" and has sampled inputs; only "
                               "stages that get every frame of their inputs can have them",
                               s.name));
    if (s.is_port())
        refuse(at, fmt::format("port \"{}\": sampled is only for stages whose programs the run starts; a "
                               "program reads the newest frames with run.latest(...)",
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

u32 sampled_output(const stage_spec& s, std::size_t sampled, const stage_description& from) {
    const std::string& name = s.sampled_outputs.at(sampled);
    const source_position& at = s.position_of(sampled_key);
    std::vector<std::string> names;
    for (u32 o = 0; o < from.outputs(); ++o) names.push_back(from.ring(o).output);
    if (name.empty()) return 0;
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
