#include "control/ps_message.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace carousel::run {

using nlohmann::json;

void to_json(json& j, const counted_latency& c) { j = json::array({c.from_ms, c.to_ms, c.frames}); }
void from_json(const json& j, counted_latency& c) {
    if (!j.is_array() || j.size() != 3) throw json_field_error("expected [from_ms, to_ms, frames]");
    c = {j[0].get<f64>(), j[1].get<f64>(), j[2].get<u64>()};
}

json to_json(const ps_answer& a) { return a; }
json to_json(const ps_link& l) { return l; }

ps_answer read_ps(const json& answer) {
    ps_answer a;
    read_known_fields(answer, a);
    if (!a.pipeline.bottleneck.is_object()) a.pipeline.bottleneck = json();
    return a;
}

std::string ps_pipeline::limit() const {
    const auto text = bottleneck.is_object() ? bottleneck.find("text") : bottleneck.end();
    return text != bottleneck.end() && text->is_string() ? text->get<std::string>() : "";
}

std::string describe(const ps_host& h) {
    std::string text = "host " + h.name + " (" + h.address + "): " + h.state;
    if (!h.clock_ahead_ms || !h.clock_error_ms) return text;
    char clock[160];
    std::snprintf(clock, sizeof clock, ", its clock is %.3f ms %s this host's clock (within %.3f ms)",
                  std::abs(*h.clock_ahead_ms), *h.clock_ahead_ms < 0 ? "behind" : "ahead of",
                  *h.clock_error_ms);
    return text + clock;
}

std::string describe(const ps_fallback& f) {
    if (f.stages.empty()) return "";
    std::string text;
    for (const std::string& stage : f.stages) text += (text.empty() ? "" : ", ") + stage;
    const bool one = f.stages.size() == 1;
    return text + (one ? " is" : " are") + " on the CPU instead of " + f.configured + ": " + f.why +
           "; `carousel device " + f.configured + "` returns " + (one ? "it" : "them");
}

namespace {

/// One list of names per property; the lists and the names in each list are in the order of their first
/// appearance.
class name_lists {
public:
    void add(const std::string& of, const std::string& name) {
        auto at = std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return each.first == of; });
        if (at == all_.end()) at = all_.insert(at, {of, ""});
        at->second += (at->second.empty() ? "" : ", ") + name;
    }
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& all() const { return all_; }

private:
    std::vector<std::pair<std::string, std::string>> all_;
};

/// "fragment.1" if the stage has several instances, otherwise "fragment".
std::string name_among(const ps_answer& a, const ps_stage& s) {
    const auto rows = std::count_if(a.stages.begin(), a.stages.end(),
                                    [&](const ps_stage& each) { return each.name == s.name; });
    std::string name = *s.name;
    if (rows > 1) name.append(".").append(std::to_string(s.instance.value_or(0)));
    return name;
}

std::string in_words(const std::string& reach) {
    return reach == "trying" ? "is testing both ways to read rings on another GPU"
           : reach == "copy" ? "reaches rings on another GPU by a copy"
                             : "reaches rings on another GPU through the mapping";
}

}  // namespace

std::vector<std::string> depth_sentences(const ps_answer& a) {
    name_lists by_reason, graphs, by_way;
    for (const ps_stage& s : a.stages) {
        if (!s.name) continue;
        if (s.in_flight && s.depth_reason)
            by_reason.add(*s.depth_reason, *s.name + " " + std::to_string(*s.in_flight));
        if (s.graphs.value_or(false)) graphs.add("", *s.name);
        if (s.reach) by_way.add(in_words(*s.reach), name_among(a, s));
    }
    std::vector<std::string> out;
    const auto add_line = [&out](const char* of, const std::string& names, const std::string& what) {
        std::string line = of;
        out.push_back(line.append(names).append(": ").append(what));
    };
    for (const auto& [reason, names] : by_reason.all()) add_line("in flight: ", names, reason);
    for (const auto& [none, names] : graphs.all())
        out.push_back("graphs: the work of a frame is one launch in " + names);
    for (const auto& [way, names] : by_way.all()) add_line("reach: ", names, way);
    return out;
}

std::vector<std::string> names_for_commands(const ps_answer& a) {
    std::map<std::string, u32> instances;
    for (const ps_stage& s : a.stages)
        if (s.name) ++instances[*s.name];
    std::vector<std::string> names;
    for (const auto& [name, count] : instances) {
        names.push_back(name);
        for (u32 k = 0; count > 1 && k < count; ++k) names.push_back(name + "." + std::to_string(k));
    }
    return names;
}

}  // namespace carousel::run
