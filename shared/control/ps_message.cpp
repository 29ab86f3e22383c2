#include "control/ps_message.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace carousel::run {
namespace {

using nlohmann::json;
constexpr std::array kill_names{"idle", "open", "submitted", "committed", "aborted"};
constexpr f64 largest_whole = 9007199254740992.0;  // 2^53: above it, a float is not an exact count

template <typename T>
json or_null(const std::optional<T>& v) {
    return v ? json(*v) : json();
}

const json& member(const json& j, const char* key) {
    static const json none;
    const auto at = j.is_object() ? j.find(key) : j.end();
    return j.is_object() && at != j.end() ? *at : none;
}

std::optional<std::string> text_in(const json& j, const char* key) {
    const json& v = member(j, key);
    return v.is_string() ? std::optional(v.get<std::string>()) : std::nullopt;
}

std::optional<f64> number_in(const json& j, const char* key) {
    const json& v = member(j, key);
    return v.is_number() ? std::optional(v.get<f64>()) : std::nullopt;
}

/// A count that fits T; empty if the value is not one.
template <typename T>
std::optional<T> count_of(const json& v) {
    if (v.is_number_unsigned() && std::in_range<T>(v.get<u64>())) return static_cast<T>(v.get<u64>());
    if (v.is_number_unsigned()) return std::nullopt;
    if (v.is_number_integer() && std::in_range<T>(v.get<json::number_integer_t>()))
        return static_cast<T>(v.get<json::number_integer_t>());
    if (!v.is_number_float() || !(v.get<f64>() >= 0 && v.get<f64>() <= largest_whole)) return std::nullopt;
    const auto whole = static_cast<u64>(v.get<f64>());
    return std::in_range<T>(whole) ? std::optional(static_cast<T>(whole)) : std::nullopt;
}

template <typename T>
std::optional<T> count_in(const json& j, const char* key) {
    return count_of<T>(member(j, key));
}

bool flag_in(const json& j, const char* key) {
    const json& v = member(j, key);
    return v.is_boolean() && v.get<bool>();
}

std::vector<std::string> texts_in(const json& j, const char* key) {
    std::vector<std::string> all;
    if (const json& list = member(j, key); list.is_array())
        for (const json& each : list)
            if (each.is_string()) all.push_back(each.get<std::string>());
    return all;
}

json latencies_json(const std::optional<std::vector<counted_latency>>& all) {
    if (!all) return json();
    json out = json::array();
    for (const counted_latency& c : *all) out.push_back({c.from_ms, c.to_ms, c.frames});
    return out;
}

std::optional<std::vector<counted_latency>> latencies_in(const json& j, const char* key) {
    const json& list = member(j, key);
    if (!list.is_array()) return std::nullopt;
    std::vector<counted_latency> all;
    for (const json& each : list) {
        if (!each.is_array() || each.size() != 3 || !each[0].is_number() || !each[1].is_number()) continue;
        if (const auto frames = count_of<u64>(each[2]))
            all.push_back({each[0].get<f64>(), each[1].get<f64>(), *frames});
    }
    return all;
}

json stage_json(const ps_stage& s) {
    return {{"name", or_null(s.name)},
            {"instance", or_null(s.instance)},
            {"pid", or_null(s.pid)},
            {"state", or_null(s.state)},
            {"waits_for", or_null(s.waits_for)},
            {"standby", or_null(s.standby)},
            {"standby_pid", or_null(s.standby_pid)},
            {"age_s", or_null(s.age_s)},
            {"restarts", or_null(s.restarts)},
            {"last_exit", or_null(s.last_exit)},
            {"frames_per_second", or_null(s.frames_per_second)},
            {"frames", or_null(s.frames)},
            {"busy", or_null(s.busy)},
            {"wait_input", or_null(s.wait_input)},
            {"wait_output", or_null(s.wait_output)},
            {"wait_own", or_null(s.wait_own)},
            {"wait_turn", or_null(s.wait_turn)},
            {"commits", or_null(s.commits)},
            {"cpu_percent", or_null(s.cpu_percent)},
            {"memory_bytes", or_null(s.memory_bytes)},
            {"end_to_end", latencies_json(s.end_to_end)},
            {"device", or_null(s.device)},
            {"in_flight", or_null(s.in_flight)},
            {"depth_reason", or_null(s.depth_reason)},
            {"graphs", or_null(s.graphs)},
            {"reach", or_null(s.reach)},
            {"inputs_guarded", or_null(s.inputs_guarded)},
            {"output_guarded", or_null(s.output_guarded)},
            {"block_guard", or_null(s.block_guard)}};
}

ps_stage stage_from(const json& j) {
    ps_stage s;
    s.name = text_in(j, "name");
    s.instance = count_in<u32>(j, "instance");
    s.pid = count_in<i32>(j, "pid");
    s.state = text_in(j, "state");
    s.waits_for = text_in(j, "waits_for");
    s.standby = text_in(j, "standby");
    s.standby_pid = count_in<i32>(j, "standby_pid");
    s.age_s = number_in(j, "age_s");
    s.restarts = count_in<u32>(j, "restarts");
    s.last_exit = text_in(j, "last_exit");
    s.frames_per_second = number_in(j, "frames_per_second");
    s.frames = count_in<u64>(j, "frames");
    s.busy = number_in(j, "busy");
    s.wait_input = number_in(j, "wait_input");
    s.wait_output = number_in(j, "wait_output");
    s.wait_own = number_in(j, "wait_own");
    s.wait_turn = number_in(j, "wait_turn");
    s.commits = count_in<u64>(j, "commits");
    s.cpu_percent = number_in(j, "cpu_percent");
    s.memory_bytes = count_in<u64>(j, "memory_bytes");
    s.end_to_end = latencies_in(j, "end_to_end");
    s.device = text_in(j, "device");
    s.in_flight = count_in<u32>(j, "in_flight");
    s.depth_reason = text_in(j, "depth_reason");
    if (member(j, "graphs").is_boolean()) s.graphs = flag_in(j, "graphs");
    s.reach = text_in(j, "reach");
    if (member(j, "inputs_guarded").is_boolean()) s.inputs_guarded = flag_in(j, "inputs_guarded");
    if (member(j, "output_guarded").is_boolean()) s.output_guarded = flag_in(j, "output_guarded");
    s.block_guard = text_in(j, "block_guard");
    return s;
}

/// A link that lacks any field is rejected: a drawing of it would show another run.
std::optional<ps_link> link_from(const json& j) {
    const auto stage = text_in(j, "stage"), format = text_in(j, "format"), memory = text_in(j, "memory");
    const auto slots = count_in<u32>(j, "slots");
    const auto slot_bytes = count_in<u64>(j, "slot_bytes");
    const json& readers = member(j, "readers");
    if (!stage || !format || !memory || !slots || !slot_bytes || !readers.is_array()) return std::nullopt;
    ps_link l{*stage,
              *format,
              *memory,
              *slots,
              count_in<u32>(j, "window").value_or(0),
              *slot_bytes,
              {},
              text_in(j, "guard").value_or(""),
              text_in(j, "output").value_or("")};
    for (const json& r : readers) {
        const auto reader = text_in(r, "stage"), group = text_in(r, "group");
        if (!reader || !group) return std::nullopt;
        l.readers.push_back({*reader, *group, member(r, "port") == true});
    }
    return l;
}

std::optional<std::vector<ps_link>> links_from(const json& list) {
    if (!list.is_array()) return std::nullopt;
    std::vector<ps_link> links;
    for (const json& each : list) {
        std::optional<ps_link> l = link_from(each);
        if (!l) return std::nullopt;
        links.push_back(std::move(*l));
    }
    return links;
}

json mps_json(const std::optional<ps_mps>& m) {
    if (!m) return json();
    return {{"daemon_pid", m->daemon_pid},       {"generation", m->generation}, {"up", m->up},
            {"domain_faults", m->domain_faults}, {"abandoned", m->abandoned},   {"spare", m->spare}};
}

std::optional<ps_mps> mps_from(const json& j) {
    if (!j.is_object()) return std::nullopt;
    return ps_mps{count_in<i32>(j, "daemon_pid").value_or(0),
                  count_in<u32>(j, "generation").value_or(0),
                  flag_in(j, "up"),
                  count_in<u64>(j, "domain_faults").value_or(0),
                  flag_in(j, "abandoned"),
                  flag_in(j, "spare")};
}

json pipeline_json(const ps_pipeline& p) {
    json kills = json::object();
    for (std::size_t k = 0; k < kill_names.size(); ++k) kills[kill_names[k]] = p.kills_at[k];
    return {{"name", or_null(p.name)},
            {"state", or_null(p.state)},
            {"state_text", or_null(p.state_text)},
            {"waits_for", p.waits_for},
            {"bottleneck", p.bottleneck},
            {"pid", or_null(p.pid)},
            {"run_id", or_null(p.run_id)},
            {"owner_pid", or_null(p.owner_pid)},
            {"mps", mps_json(p.mps)},
            {"file", or_null(p.file)},
            {"device", or_null(p.device)},
            {"uptime_s", or_null(p.uptime_s)},
            {"frames", or_null(p.frames)},
            {"restarts", or_null(p.restarts)},
            {"stalls", or_null(p.stalls)},
            {"damaged", or_null(p.damaged)},
            {"kills_at", std::move(kills)},
            {"frames_per_second", or_null(p.frames_per_second)}};
}

ps_pipeline pipeline_from(const json& j) {
    ps_pipeline p;
    p.name = text_in(j, "name");
    p.state = text_in(j, "state");
    p.state_text = text_in(j, "state_text");
    p.run_id = text_in(j, "run_id");
    p.file = text_in(j, "file");
    p.device = text_in(j, "device");
    p.waits_for = texts_in(j, "waits_for");
    if (const json& b = member(j, "bottleneck"); b.is_object()) p.bottleneck = b;
    p.pid = count_in<i32>(j, "pid");
    p.owner_pid = count_in<i32>(j, "owner_pid");
    p.mps = mps_from(member(j, "mps"));
    p.uptime_s = number_in(j, "uptime_s");
    p.frames_per_second = number_in(j, "frames_per_second");
    p.frames = count_in<u64>(j, "frames");
    p.restarts = count_in<u64>(j, "restarts");
    p.stalls = count_in<u64>(j, "stalls");
    p.damaged = count_in<u64>(j, "damaged");
    for (std::size_t k = 0; k < kill_names.size(); ++k)
        p.kills_at[k] = count_in<u64>(member(j, "kills_at"), kill_names[k]).value_or(0);
    return p;
}

}  // namespace

std::string ps_pipeline::limit() const { return text_in(bottleneck, "text").value_or(""); }

json to_json(const ps_link& l) {
    json readers = json::array();
    for (const ps_link::reader& r : l.readers) {
        readers.push_back({{"stage", r.stage}, {"group", r.group}});
        if (r.port) readers.back()["port"] = true;
    }
    return {{"stage", l.stage},   {"format", l.format},         {"slots", l.slots},
            {"window", l.window}, {"slot_bytes", l.slot_bytes}, {"memory", l.memory},
            {"guard", l.guard},   {"output", l.output},         {"readers", std::move(readers)}};
}

namespace {

json host_json(const ps_host& h) {
    return {{"name", h.name},
            {"address", h.address},
            {"state", h.state},
            {"clock_ahead_ms", or_null(h.clock_ahead_ms)},
            {"clock_error_ms", or_null(h.clock_error_ms)}};
}

}  // namespace

std::string describe(const ps_host& h) {
    std::string text = "host " + h.name + " (" + h.address + "): " + h.state;
    if (!h.clock_ahead_ms || !h.clock_error_ms) return text;
    char clock[160];
    std::snprintf(clock, sizeof clock, ", its clock is %.3f ms %s this one's (to %.3f ms)",
                  std::abs(*h.clock_ahead_ms), *h.clock_ahead_ms < 0 ? "behind" : "ahead of",
                  *h.clock_error_ms);
    return text + clock;
}

json to_json(const ps_answer& a) {
    json stages = json::array(), links = json::array(), hosts = json::array();
    for (const ps_host& h : a.hosts) hosts.push_back(host_json(h));
    for (const ps_stage& s : a.stages) stages.push_back(stage_json(s));
    if (a.links)
        for (const ps_link& l : *a.links) links.push_back(to_json(l));
    return {{"ok", true},
            {"pipeline", pipeline_json(a.pipeline)},
            {"stages", std::move(stages)},
            {"problems", a.problems},
            {"hosts", std::move(hosts)},
            {"links", a.links ? std::move(links) : json()}};
}

ps_answer read_ps(const json& answer) {
    ps_answer a;
    a.pipeline = pipeline_from(member(answer, "pipeline"));
    if (const json& rows = member(answer, "stages"); rows.is_array())
        for (const json& each : rows)
            if (each.is_object()) a.stages.push_back(stage_from(each));
    a.problems = texts_in(answer, "problems");
    if (const json& hosts = member(answer, "hosts"); hosts.is_array())
        for (const json& h : hosts)
            if (h.is_object())
                a.hosts.push_back({text_in(h, "name").value_or("?"), text_in(h, "address").value_or("?"),
                                   text_in(h, "state").value_or("?"), number_in(h, "clock_ahead_ms"),
                                   number_in(h, "clock_error_ms")});
    a.links = links_from(member(answer, "links"));
    return a;
}

namespace {

/// Lists of names by property, both in order of first appearance.
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
