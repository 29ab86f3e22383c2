#include "stages/sdk/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/errors.hpp"
#include "core/user_input.hpp"

namespace carousel {

std::string configuration::path(std::string_view written) const {
    return (std::filesystem::path(folder) / written).lexically_normal().string();
}

void check_outputs(const description& d) {
    const auto& all = d.outputs;
    if (all.size() > max_stage_outputs)
        throw config_error(
            fmt::format("{} outputs are named; at most {}: a downstream stage can produce more", all.size(),
                        max_stage_outputs));
    for (std::size_t k = 0; k < all.size(); ++k) {
        const std::string& name = all[k].name;
        if (name.empty() && all.size() == 1) continue;
        const bool spelled = std::all_of(name.begin(), name.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                   c == '_';
        });
        if (name.empty() || name.size() > max_output_name || !spelled)
            throw config_error(fmt::format(
                "output {} of {} is named \"{}\"; expected a name of 1 to {} letters, digits, - and _", k + 1,
                all.size(), name, max_output_name));
        const auto same = [&](const output_description& o) { return o.name == name; };
        if (std::find_if(all.begin(), all.end(), same) != all.begin() + static_cast<std::ptrdiff_t>(k))
            throw config_error(fmt::format("two outputs are named \"{}\"", name));
    }
}

void check_reads(const description& d, const configuration& with) {
    for (const plane_read& r : d.reads) {
        if (r.input >= with.inputs.size())
            throw config_error(fmt::format(
                "stage {} reads the plane \"{}\" of its input {}, but it has {} input{}; add stages to the "
                "key inputs",
                with.stage, r.plane, r.input + 1, with.inputs.size(), with.inputs.size() == 1 ? "" : "s"));
        const input_description& from = with.inputs[r.input];
        const plane* const found = from.format.find(r.plane);
        if (found != nullptr && (!r.type || *r.type == found->type)) continue;
        if (found != nullptr)
            throw config_error(
                fmt::format("stage {} reads the plane \"{}\" of its input {} as {}, but it is {} in {}",
                            with.stage, r.plane, from.stage, ring::name_of(*r.type),
                            ring::name_of(found->type), from.format.describe()));
        std::vector<std::string> names;
        for (const plane& each : from.format.planes) names.push_back(each.name);
        throw config_error(
            fmt::format("stage {} reads the plane \"{}\", which its input {} does not have: {}{}", with.stage,
                        r.plane, from.stage, from.format.describe(), did_you_mean_clause(r.plane, names)));
    }
}

std::size_t output_index(const std::vector<output_description>& outputs, std::string_view name) {
    std::vector<std::string> names;
    for (const output_description& o : outputs) {
        if (o.name == name) return names.size();
        names.push_back(o.name.empty() ? "one without a name" : o.name);
    }
    throw config_error(fmt::format("there is no output \"{}\"; the outputs are: {}", name,
                                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

const frame_format* output_of(const description& d) {
    if (d.outputs.size() > 1)
        throw config_error(
            fmt::format("configure() names {} outputs, including {} and {}; only one is possible here",
                        d.outputs.size(), d.outputs[0].describe(), d.outputs[1].describe()));
    return d.outputs.empty() ? nullptr : &d.outputs.front();
}

frame_format* output_of(description& d) { return const_cast<frame_format*>(output_of(std::as_const(d))); }

}  // namespace carousel
