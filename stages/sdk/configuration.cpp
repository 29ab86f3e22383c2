#include "stages/sdk/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"

namespace carousel {

std::string configuration::path(std::string_view written) const {
    return (std::filesystem::path(folder) / written).lexically_normal().string();
}

void check_outputs(const description& d) {
    const auto& all = d.outputs;
    if (all.size() > max_stage_outputs)
        throw config_error(fmt::format(
            "{} outputs are named, but at most {} are possible; a downstream stage can produce more",
            all.size(), max_stage_outputs));
    if (!d.state.empty() && all.size() == max_stage_outputs)
        throw config_error(fmt::format(
            "{} outputs and a state are named; the state counts as an output, and at most {} are possible",
            all.size(), max_stage_outputs));
    for (std::size_t k = 0; k < all.size(); ++k) {
        const std::string& name = all[k].name;
        if (name == state_output && !d.state.empty())
            throw config_error(fmt::format(
                "an output is named \"{}\", which is the name of the stage's state", state_output));
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

std::vector<output_description> all_outputs(const description& d) {
    std::vector<output_description> all = d.outputs;
    if (!d.state.empty()) all.emplace_back(std::string(state_output), frame_format{"state", d.state, {}});
    for (output_description& o : all) (void)o.lay_out();
    return all;
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

struct settings::state {
    nlohmann::json values = nlohmann::json::object();
    /// the keys whose values the stage has requested; these are the keys that it supports
    std::set<std::string, std::less<>> read;
    /// the keys in `read`, and also the keys that the stage has only tested for presence
    std::set<std::string, std::less<>> known;

    /// Returns the value of `key`, or null; records that the stage supports the key.
    const nlohmann::json* find_value(std::string_view key) {
        read.emplace(key);
        known.emplace(key);
        const auto at = values.find(std::string(key));
        return at == values.end() ? nullptr : &*at;
    }
};

namespace {

[[noreturn]] void wrong_value(std::string_view key, const nlohmann::json& value, std::string_view expected) {
    throw settings_error(std::string(key), fmt::format("{} = {}: expected {}", key, value.dump(), expected));
}

}  // namespace

settings::settings() : state_(std::make_unique<state>()) {}
settings::~settings() = default;
settings::settings(settings&&) noexcept = default;
settings& settings::operator=(settings&&) noexcept = default;

settings settings::from_json(std::string_view text) {
    settings result;
    try {
        result.state_->values = parse_json(text, json_channel::document);
    } catch (const nlohmann::json::exception& e) {
        throw config_error(fmt::format("stage settings: not JSON: {}", e.what()));
    }
    if (!result.state_->values.is_object()) {
        throw config_error(
            fmt::format("stage settings: expected a JSON object, got {}", result.state_->values.type_name()));
    }
    return result;
}

i64 settings::integer(std::string_view key, i64 fallback, i64 low, i64 high) const {
    const auto* value = state_->find_value(key);
    if (value == nullptr) {
        return fallback;
    }
    const std::string expected = fmt::format("a whole number from {} to {}", low, high);
    const bool too_large = value->is_number_unsigned() && value->get<u64>() > static_cast<u64>(INT64_MAX);
    if (!value->is_number_integer() || too_large || value->get<i64>() < low || value->get<i64>() > high) {
        wrong_value(key, *value, expected);
    }
    return value->get<i64>();
}

f64 settings::number(std::string_view key, f64 fallback, f64 low, f64 high) const {
    const auto* value = state_->find_value(key);
    if (value == nullptr) {
        return fallback;
    }
    // Written in this form so that NaN is also refused.
    if (!value->is_number() || !(value->get<f64>() >= low && value->get<f64>() <= high)) {
        wrong_value(key, *value, fmt::format("a number from {} to {}", low, high));
    }
    return value->get<f64>();
}

bool settings::flag(std::string_view key, bool fallback) const {
    const auto* value = state_->find_value(key);
    if (value == nullptr) {
        return fallback;
    }
    if (!value->is_boolean()) {
        wrong_value(key, *value, "true or false");
    }
    return value->get<bool>();
}

std::string settings::text(std::string_view key, std::string_view fallback) const {
    const auto* value = state_->find_value(key);
    if (value == nullptr) {
        return std::string(fallback);
    }
    if (!value->is_string()) {
        wrong_value(key, *value, "a text in quotes");
    }
    return value->get<std::string>();
}

std::string settings::choice(std::string_view key, std::string_view fallback,
                             const std::vector<std::string>& choices) const {
    std::string chosen = text(key, fallback);
    if (std::find(choices.begin(), choices.end(), chosen) == choices.end()) {
        throw settings_error(std::string(key),
                             fmt::format("{} = \"{}\": expected one of {}{}", key, chosen,
                                         fmt::join(choices, ", "), did_you_mean_clause(chosen, choices)));
    }
    return chosen;
}

std::map<std::string, std::string> settings::texts(std::string_view key) const {
    const auto* value = state_->find_value(key);
    if (value == nullptr) return {};
    constexpr const char* expected = "a table of texts, numbers or flags, e.g. { name = \"value\" }";
    if (!value->is_object()) wrong_value(key, *value, expected);
    std::map<std::string, std::string> out;
    for (const auto& [name, entry] : value->items()) {
        if (!entry.is_string() && !entry.is_number() && !entry.is_boolean())
            wrong_value(key, *value, expected);
        out[name] = entry.is_string() ? entry.get<std::string>() : entry.dump();
    }
    return out;
}

bool settings::has(std::string_view key) const {
    state_->known.emplace(key);
    return state_->values.contains(std::string(key));
}

void settings::refuse_unread() const {
    for (const auto& [key, value] : state_->values.items()) {
        if (state_->read.count(key) == 0) {
            const std::vector<std::string> known(state_->known.begin(), state_->known.end());
            const std::string all = known.empty()
                                        ? "this stage has no settings"
                                        : fmt::format("its settings are {}", fmt::join(known, ", "));
            throw settings_error(
                key, fmt::format("unknown key \"{}\"{} ({})", key, did_you_mean_clause(key, known), all));
        }
    }
}

std::string make_output_directory(const std::string& path) {
    if (path.empty())
        throw output_error(
            "this run has no output directory: the directory in which it was started no longer existed; "
            "start the "
            "run in a directory that exists");
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed)
        throw_output_error(
            path, failed.value(),
            fmt::format("creating the output directory {}: {}; start the run in a directory that "
                        "this user can write to",
                        path, errno_text(failed.value())));
    return path;
}

}  // namespace carousel
