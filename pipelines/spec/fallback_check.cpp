#include "spec/fallback_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace carousel::supervisor {
namespace {

const source_position& place_of_key(const pipeline& p, const stage_spec& s) {
    if (s.key_at.contains("fallback")) return s.key_at.at("fallback");
    const auto at = p.key_at.find("fallback");
    return at != p.key_at.end() ? at->second : s.at;
}

/// A frame that was only in the memory of a lost GPU is made again from its source.
void check_source(const pipeline& p, const stage_spec& s, const stage_description& d) {
    if (!s.inputs.empty()) return;
    const bool received = d.ends && d.forwards_frames;
    if (!s.is_port() && !received) return;
    refuse(
        place_of_key(p, s),
        fmt::format("fallback: the frames of stage \"{}\" come from {} and can't be made again, so those in "
                    "the memory of a lost GPU would be lost: remove fallback, or run the stages that read "
                    "them on the CPU",
                    s.name, s.is_port() ? "a program at a port" : "another host"));
}

}  // namespace

bool may_leave_gpu(const pipeline_spec& p, const stage_spec& s) noexcept {
    return s.device != "cpu" && !s.is_port() &&
           (p.fallback == fallback_kind::cpu || s.fallback == fallback_kind::cpu);
}

void check_fallback(const pipeline& p, const std::vector<stage_description>& all) {
    const bool any = std::any_of(p.stages.begin(), p.stages.end(),
                                 [&](const stage_spec& s) { return may_leave_gpu(p, s); });
    for (std::size_t k = 0; k < p.stages.size() && any; ++k) {
        const stage_spec& s = p.stages[k];
        const stage_description& d = all[k];
        check_source(p, s, d);
        if (s.is_port() && s.device != "cpu")
            refuse(place_of_key(p, s),
                   fmt::format("fallback: stage \"{}\" is a port, and its program can't be moved to the CPU: "
                               "set device = \"cpu\" for it",
                               s.name));
        if (d.state && p.checkpoint_every == 0 && !p.allow_state_loss && !p.fallback_inexact)
            refuse(place_of_key(p, s),
                   fmt::format(
                       "fallback: stage \"{}\" has a state, and without checkpoints it begins again when "
                       "stages move: set checkpoint_every, or allow_state_loss = true",
                       s.name));
        if (!may_leave_gpu(p, s) || d.device == runs_on::cpu) continue;
        if (d.device == runs_on::cuda)
            refuse(place_of_key(p, s),
                   fmt::format("fallback: stage \"{}\" runs only on a GPU, so it can't continue on the CPU: "
                               "give it a body for the CPU, or remove fallback",
                               s.name));
        if (!d.bit_equal && !p.fallback_inexact)
            refuse(
                place_of_key(p, s),
                fmt::format("fallback: stage \"{}\" does not declare bit_equal, so its frames may be other "
                            "ones on the CPU: declare it in configure() if they are the same bytes, or "
                            "accept that with fallback_inexact = true",
                            s.name));
    }
}

std::string fallback_text(const pipeline& p, const std::vector<stage_description>& all) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < p.stages.size(); ++k)
        if (may_leave_gpu(p, p.stages[k]) && all[k].device != runs_on::cpu) names.push_back(p.stages[k].name);
    if (names.empty()) return "";
    const std::vector<std::string> inexact = inexact_stages(p, all);
    return fmt::format(
        "fallback: {} move{} to the CPU if the GPU fails{}", fmt::join(names, ", "),
        names.size() == 1 ? "s" : "",
        inexact.empty() ? std::string() : fmt::format("; inexact: {}", fmt::join(inexact, ", ")));
}

std::vector<std::string> inexact_stages(const pipeline& p, const std::vector<stage_description>& all) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < p.stages.size(); ++k)
        if (may_leave_gpu(p, p.stages[k]) && all[k].device == runs_on::any && !all[k].bit_equal)
            names.push_back(p.stages[k].name);
    return names;
}

}  // namespace carousel::supervisor
