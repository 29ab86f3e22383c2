#include "spec/parameters.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::supervisor {
namespace {

ring::parameter_schema common_schema(const pipeline& p, const std::vector<stage_description>& described) {
    const stage_description* first = nullptr;
    for (std::size_t k = 0; k < described.size(); ++k) {
        const stage_description& d = described[k];
        if (!d.parameters) continue;
        if (first == nullptr) first = &d;
        if (d.parameters == first->parameters) continue;
        const bool same_type = d.parameters.type == first->parameters.type;
        refuse(p.stages[k].at,
               fmt::format("stage \"{}\" takes parameters of {}, but stage \"{}\" takes {}{}: the stages of "
                           "a pipeline share "
                           "one set of parameters",
                           d.stage, d.parameters.describe(), first->stage, first->parameters.describe(),
                           same_type ? " (another version of the type)" : ""));
    }
    return first != nullptr ? first->parameters : ring::parameter_schema{};
}

}  // namespace

parameter_plan plan_parameters(const pipeline& p, const std::vector<stage_description>& described) {
    parameter_plan out{common_schema(p, described), {}};
    if (!out.schema) {
        if (!p.parameters.empty())
            refuse(p.parameters.begin()->second.key_at, "[parameters]: no stage of this pipeline takes any");
        return out;
    }
    out.values = out.schema.initial_values();
    for (const auto& [key, entry] : p.parameters) {
        try {
            out.schema.set(out.values, key, entry.value);
        } catch (const config_error& e) {
            refuse(out.schema.find(key) != nullptr ? entry.value_at : entry.key_at, e.what());
        }
    }
    try {
        out.schema.check_values(out.values);
    } catch (const config_error& e) {
        refuse(p.parameters_at, e.what());
    }
    return out;
}

}  // namespace carousel::supervisor
