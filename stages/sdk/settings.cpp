#include "stages/sdk/settings.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"

namespace carousel {

struct settings::state {
    nlohmann::json values = nlohmann::json::object();
    /// keys whose value was requested, which are the keys that the stage supports
    std::set<std::string, std::less<>> read;
    /// the same keys, and keys that were only tested for presence
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

}  // namespace carousel
