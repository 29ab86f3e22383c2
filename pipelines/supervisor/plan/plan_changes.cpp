#include "supervisor/plan/plan_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace carousel::supervisor {
namespace {

using nlohmann::json;

// Each key that may change while a pipeline runs. All other keys are fixed.
struct pipeline_key {
    const char* key;
    void (*take)(run_setup& to, const run_setup& from);
};
constexpr pipeline_key live_pipeline_keys[] = {
    {"allow_dead_letters", [](auto& to, auto& from) { to.allow_dead_letters = from.allow_dead_letters; }},
    {"allow_state_loss", [](auto& to, auto& from) { to.allow_state_loss = from.allow_state_loss; }},
    {"fallback_after", [](auto& to, auto& from) { to.fallback_after = from.fallback_after; }},
    {"fallback_window_s", [](auto& to, auto& from) { to.fallback_window_s = from.fallback_window_s; }},
    {"frame_timeout_ms", [](auto& to, auto& from) { to.frame_timeout_ms = from.frame_timeout_ms; }},
    {"stall_timeout_ms", [](auto& to, auto& from) { to.stall_timeout_ms = from.stall_timeout_ms; }},
};

struct stage_key {
    const char* key;
    change_kind kind;
    void (*take)(stage_setup& to, const stage_setup& from);
};
constexpr stage_key changeable_stage_keys[] = {
    {"restart", change_kind::live, [](auto& to, auto& from) { to.spec.restart = from.spec.restart; }},
    {"standby", change_kind::live,
     [](auto& to, auto& from) {
         to.spec.standby = from.spec.standby;
         to.spec.standby_auto = from.spec.standby_auto;
     }},
    {"frame_timeout_ms", change_kind::live,
     [](auto& to, auto& from) { to.spec.frame_timeout_ms = from.spec.frame_timeout_ms; }},
    {"first_frame_timeout_ms", change_kind::live,
     [](auto& to, auto& from) { to.spec.first_frame_timeout_ms = from.spec.first_frame_timeout_ms; }},
    {"run", change_kind::restart,
     [](auto& to, auto& from) {
         to.program = from.program;
         to.spec.run = from.spec.run;
     }},
    {"python", change_kind::restart,
     [](auto& to, auto& from) {
         to.python = from.python;
         to.spec.python = from.spec.python;
     }},
    {"prefix", change_kind::restart, [](auto& to, auto& from) { to.spec.prefix = from.spec.prefix; }},
    {"settings", change_kind::restart, [](auto& to, auto& from) { to.spec.settings = from.spec.settings; }},
};

const stage_key* find_stage_key(std::string_view key) {
    const auto* const found = std::find_if(std::begin(changeable_stage_keys), std::end(changeable_stage_keys),
                                           [&](const stage_key& k) { return key == k.key; });
    return found == std::end(changeable_stage_keys) ? nullptr : found;
}

bool is_live_pipeline_key(std::string_view key) {
    return std::any_of(std::begin(live_pipeline_keys), std::end(live_pipeline_keys),
                       [&](const pipeline_key& k) { return key == k.key; });
}

json member(const json& of, const std::string& key) {
    return of.is_object() ? of.value(key, json()) : json();
}

/// Calls `f` with the key and both values of each member that differs.
template <typename F>
void for_each_difference(const json& then, const json& now, F&& f) {
    std::set<std::string> keys;
    for (const json* each : {&then, &now})
        if (each->is_object())
            for (const auto& [key, value] : each->items()) keys.insert(key);
    for (const std::string& key : keys)
        if (const json from = member(then, key), to = member(now, key); from != to) f(key, from, to);
}

/// Names of the assets that stage `index` fills.
std::string filled_assets(const json& plan, std::size_t index) {
    std::string names;
    for (const json& a : plan.value("assets", json::array()))
        if (a.value("maker", ~u64{0}) == index) names += (names.empty() ? "" : ", ") + a.value("name", "?");
    return names;
}

void compare_stages(const json& then, const json& now, std::vector<plan_change>& out) {
    const json &old_stages = then.at("stages"), &new_stages = now.at("stages");
    const auto names = [](const json& stages) {
        json all = json::array();
        for (const json& s : stages) all.push_back(s.at("name"));
        return all;
    };
    if (names(old_stages) != names(new_stages)) {
        out.push_back({change_kind::refused, "", "stages", names(old_stages), names(new_stages), ""});
        return;
    }
    for (std::size_t k = 0; k < old_stages.size(); ++k) {
        const std::string name = old_stages[k].at("name");
        const bool port = old_stages[k].at("run") == "port" || new_stages[k].at("run") == "port";
        const std::string assets = filled_assets(then, k);
        for_each_difference(old_stages[k], new_stages[k], [&](const std::string& key, auto& from, auto& to) {
            const stage_key* const found = find_stage_key(key);
            const bool inherited =
                key == "frame_timeout_ms" && from == member(then, key) && to == member(now, key);
            if (inherited) return;  // reported once, for [pipeline]
            plan_change c{found != nullptr ? found->kind : change_kind::refused, name, key, from, to, ""};
            if (port && c.kind == change_kind::restart) {
                c.kind = change_kind::refused;
                c.why = "the program of a port is not restarted";
            }
            if (key != "settings") return out.push_back(std::move(c));
            if (!assets.empty() && c.kind == change_kind::restart) {
                c.kind = change_kind::refused;
                c.why = fmt::format("the stage fills the asset {} once per run", assets);
            }
            for_each_difference(from, to, [&](const std::string& setting, auto& before, auto& after) {
                out.push_back({c.kind, name, "settings." + setting, before, after, c.why});
            });
        });
    }
}

void compare_parameters(const json& then, const json& now, std::vector<plan_change>& out) {
    if (member(then, "schema") != member(now, "schema")) {
        out.push_back(
            {change_kind::refused, "", "parameters", then, now, "the stages read other parameters"});
        return;
    }
    for_each_difference(member(then, "values"), member(now, "values"),
                        [&](const std::string& name, auto& from, auto& to) {
                            out.push_back({change_kind::live, "", "parameters." + name, from, to, ""});
                        });
}

std::string shown_value(const json& value) {
    if (value.is_null()) return "absent";
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.size() > 80 ? text.substr(0, 77) + "..." : text;
}

}  // namespace

std::string plan_change::text() const {
    return fmt::format("{}{}: {} -> {}{}", stage.empty() ? "" : "stage " + stage + ": ", key,
                       shown_value(from), shown_value(to), why.empty() ? "" : " (" + why + ")");
}

json values_of_plan(const json& identity, const run_setup& s) {
    json all = identity;
    all["allow_dead_letters"] = s.allow_dead_letters == ~u64{0} ? json(true) : json(s.allow_dead_letters);
    all["allow_state_loss"] = s.allow_state_loss;
    for (json& stage : all.at("stages"))
        for (const stage_setup& st : s.stages)
            if (stage.at("name") == st.spec.name) stage["standby"] = st.spec.standby;
    return all;
}

std::vector<plan_change> changes_between(const json& then, const json& now) {
    std::vector<plan_change> out;
    for_each_difference(then, now, [&](const std::string& key, auto& from, auto& to) {
        if (key == "stages") return compare_stages(then, now, out);
        if (key == "parameters") return compare_parameters(from, to, out);
        out.push_back(
            {is_live_pipeline_key(key) ? change_kind::live : change_kind::refused, "", key, from, to, ""});
    });
    return out;
}

void take_over(run_setup& running, const run_setup& next) {
    for (const pipeline_key& k : live_pipeline_keys) k.take(running, next);
    for (std::size_t i = 0; i < running.stages.size(); ++i)
        for (const stage_key& k : changeable_stage_keys) k.take(running.stages[i], next.stages[i]);
    running.parameters.values = next.parameters.values;
}

}  // namespace carousel::supervisor
