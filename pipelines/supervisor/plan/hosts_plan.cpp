#include "supervisor/plan/hosts_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"
#include "ledger/ledger.hpp"
#include "shm/control_block.hpp"
#include "spec/hosts.hpp"
#include "spec/pipeline_keys.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The settings that name a file which a stage reads. The paths may differ between hosts; the contents must be
// the same.
constexpr const char* read_files[] = {"mesh", "texture", "file", "weights"};

json settings_json(const pipeline& p, const stage_spec& s) {
    json out = s.settings;
    for (const char* key : read_files) {
        const auto setting = out.find(key);
        if (setting == out.end() || !setting->is_string()) continue;
        const std::string name = *setting;
        if (name.find_first_of("./") == std::string::npos) continue;
        *setting = {{"content", compared_files(fs::path(folder_of(p)) / name)}};
    }
    return out;
}

json stage_json(const pipeline& p, const stage_spec& s, const stage_description& d) {
    json j = values_of(s);
    j.update({{"settings", settings_json(p, s)},
              {"format", d.format},
              {"slot_bytes", d.slot_bytes},
              {"host", s.host}});
    if (const auto link = p.links.find(s.name); link != p.links.end()) j["link"] = values_of(link->second);
    for (const output_spec& o : d.more) {
        const auto link = p.links.find(s.name + "." + o.output);
        j["more_outputs"].push_back(
            {{"output", o.output},
             {"format", o.format},
             {"slot_bytes", o.slot_bytes},
             {"link", values_of(link != p.links.end() ? link->second : link_spec())}});
    }
    return j;
}

json links_json(const pipeline& whole) {
    json out = json::array();
    for (const crossing& c : crossings_of(whole)) {
        const auto named = [&](const std::string& host) {
            return host.empty() ? coordinator_name(whole) : host;
        };
        const host_spec& to = *find_host(whole, c.to);
        out.push_back({{"stage", c.stage},
                       {"from", named(c.from)},
                       {"to", named(c.to)},
                       {"address", to.address},
                       {"port", c.port},
                       {"send", c.send},
                       {"receive", c.receive},
                       {"release", word_of(release_words, to.release)},
                       {"sync", to.sync},
                       {"compress", word_of(packing_words, to.compress)},
                       {"memory", word_of(leaving_words, to.memory)}});
    }
    return out;
}

/// Returns the keys of a link whose values, set in the section of the link's host, differ from the defaults.
std::string keys_text(const json& link) {
    std::string text;
    if (link["release"] != "committed")
        text +=
            fmt::format(", released when its sinks have a frame{}", link["sync"] == true ? ", by sync" : "");
    if (link["compress"] != "none") text += ", compressed by " + link["compress"].get<std::string>();
    if (link["memory"] == "direct") text += ", read by UCX on a GPU";
    return text;
}

json works_json(const pipeline& whole) {
    json out = json::array();
    for (const remote_work& w : remote_works_of(whole))
        out.push_back({{"stage", w.stage},
                       {"host", w.host},
                       {"instances", w.instances},
                       {"port", w.port},
                       {"back_address", find_host(whole, "")->address},
                       {"back_port", w.back_port},
                       {"receive", w.receive},
                       {"send", w.send}});
    return out;
}

json plan_of(const pipeline& whole, const std::vector<stage_description>& all,
             const parameter_plan& parameters) {
    json stages = json::array();
    for (std::size_t k = 0; k < all.size(); ++k) stages.push_back(stage_json(whole, whole.stages[k], all[k]));
    json j = values_of(static_cast<const pipeline_spec&>(whole));
    // not compared: each supervisor has its own value, which affects only its exit code
    for (const char* each : {"allow_dead_letters", "allow_state_loss"}) j.erase(each);
    j.update({{"version", CAROUSEL_VERSION},
              {"layout", shm::control_version},
              {"stages", stages},
              {"links", links_json(whole)},
              {"works", works_json(whole)}});
    if (parameters.schema)
        j["parameters"] = {{"schema", parameters.schema.to_json()},
                           {"values", parameters.schema.values_json(parameters.values)}};
    return j;
}

using names = std::set<std::string>;

json size_and_hash(const std::string& text) {
    return {{"bytes", text.size()},
            {"hash", fmt::format("{:016x}", telemetry::hash_bytes(std::as_bytes(std::span(text))))}};
}

/// Converts "a%20b" to "a b", as the mesh reader does when it decodes a URI.
std::string without_percent(const std::string& uri) {
    std::string out;
    for (std::size_t i = 0; i < uri.size(); ++i) {
        unsigned char c = 0;
        const char* const digits = uri.data() + i + 1;
        if (uri[i] == '%' && i + 2 < uri.size() &&
            std::from_chars(digits, digits + 2, c, 16).ptr == digits + 2) {
            out += static_cast<char>(c);
            i += 2;
        } else {
            out += uri[i];
        }
    }
    return out;
}

/// Returns the JSON text of a .gltf file or of a .glb file. In a .glb file it is the first chunk, which
/// begins after five words.
std::string_view json_in(std::string_view text) {
    constexpr std::size_t head = 20;
    if (!text.starts_with("glTF") || text.size() < head) return text;
    u32 bytes = 0;
    std::memcpy(&bytes, text.data() + 12, sizeof bytes);
    return text.substr(head, bytes);
}

names named_by_gltf(const std::string& text) {
    names out;
    const json j = parse_json_or_discard(json_in(text), json_channel::asset);
    for (const char* array : {"buffers", "images"}) {
        if (!j.is_object() || !j.contains(array) || !j[array].is_array()) continue;
        for (const json& each : j[array]) {
            if (!each.is_object() || !each.contains("uri") || !each["uri"].is_string()) continue;
            const auto& uri = each["uri"].get_ref<const std::string&>();
            if (!uri.starts_with("data:")) out.insert(without_percent(uri));
        }
    }
    return out;
}

/// Returns the names in those lines of an OBJ or MTL file that begin with `word`. If a line has options, the
/// name is its last word.
names words_after(const std::string& word, const std::string& text) {
    names out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first, name, rest;
        if (!(words >> first) || first != word || !(words >> name)) continue;
        const bool options = name.starts_with("-");
        while (words >> rest) name = options ? rest : name + " " + rest;
        std::replace(name.begin(), name.end(), '\\', '/');
        out.insert(name);
    }
    return out;
}

/// Returns the file's text, "" if the file is missing; adds its size and hash to `all`. Only files below the
/// folder are considered, as in the mesh reader.
std::string read_sibling(const fs::path& folder, const std::string& name, json& all) {
    const fs::path below = fs::path(name).lexically_normal();
    if (name.empty() || name.find('\0') != std::string::npos || below.is_absolute() || *below.begin() == "..")
        return "";
    std::error_code failed;
    const bool there = fs::is_regular_file(folder / below, failed);
    const auto text = there ? read_file((folder / below).string()) : std::nullopt;
    all[name] = text ? size_and_hash(*text) : json(there ? "can't be read" : "not there");
    return text.value_or("");
}

}  // namespace

bool hosts_plan::leads(const std::string& host) const noexcept {
    return std::find(leading.begin(), leading.end(), host) != leading.end();
}

bool hosts_plan::helps(const std::string& host) const noexcept {
    return std::find(helping.begin(), helping.end(), host) != helping.end();
}

u64 hosts_plan::patience_ns(const std::string& host) const {
    constexpr f64 to_be_heard_s = 5;  // time for a supervisor to start, to connect and to compare its plan
    return static_cast<u64>((grace_s.at(host) + to_be_heard_s) * 1e9);
}

std::string token_path(const pipeline& whole) { return folder_of(whole) + "/" + whole.name + ".token"; }

hosts_plan plan_hosts(const pipeline& whole, const std::string& self,
                      const std::vector<stage_description>& all) {
    hosts_plan h;
    h.self = self;
    h.coordinator = coordinator_name(whole);
    for (const host_spec* each : remote_hosts(whole)) {
        h.others.push_back(*each);
        if (only_helps(whole, each->name)) h.helping.push_back(each->name);
    }
    h.grace_s[""] = grace_of(whole, "");
    for (const host_spec& each : h.others) h.grace_s[each.name] = grace_of(whole, each.name);
    h.links = crossings_of(whole);
    h.leading = leading_hosts(whole);
    h.parameters = plan_parameters(whole, all);
    h.plan = plan_of(whole, all, h.parameters);
    h.name = whole.name;
    h.file = absolute_path(whole.file).lexically_normal().string();
    h.token = token_path(whole);
    return h;
}

json hosts_json(const pipeline& whole) {
    json out = json::array();
    for (const host_spec* h : remote_hosts(whole))
        out.push_back({{"name", h->name},
                       {"address", h->address},
                       {"port", h->port},
                       {"launcher", word_of(launcher_words, h->launcher)}});
    return {{"coordinator", coordinator_name(whole)},
            {"others", out},
            {"links", links_json(whole)},
            {"works", works_json(whole)}};
}

std::string hosts_text(const pipeline& whole) {
    std::string text;
    for (const host_spec* h : remote_hosts(whole)) {
        std::string stages;
        for (const stage_spec& s : whole.stages)
            if (s.host == h->name) stages += (stages.empty() ? "" : ", ") + s.name;
        for (const remote_work& w : remote_works_of(whole))
            if (w.host == h->name)
                stages += fmt::format("{}{} of {}", stages.empty() ? "" : ", ", w.instances, w.stage);
        text += fmt::format("host {} ({} port {}, launcher {}): {}\n", h->name, h->address, h->port,
                            word_of(launcher_words, h->launcher), stages);
    }
    for (const json& c : links_json(whole))
        text += fmt::format("{} goes from {} to {}: {} there port {}, by the stages {} and {}{}\n",
                            c["stage"].get<std::string>(), c["from"].get<std::string>(),
                            c["to"].get<std::string>(), c["address"].get<std::string>(), c["port"].get<u32>(),
                            c["send"].get<std::string>(), c["receive"].get<std::string>(), keys_text(c));
    for (const remote_work& w : remote_works_of(whole))
        text += fmt::format(
            "{} instances of {} are on {}: they receive frames at {} port {} ({}), and their results are "
            "received at {} port {} ({})\n",
            w.instances, w.stage, w.host, find_host(whole, w.host)->address, w.port, w.receive,
            find_host(whole, "")->address, w.back_port, w.send);
    return text;
}

json compared_files(const fs::path& path) {
    const std::string name = path.filename().string();
    json all;
    std::error_code failed;
    if (!fs::is_regular_file(path, failed)) return {{name, "not there"}};
    const auto text = read_file(path.string());
    if (!text)
        throw config_error(
            fmt::format("{}: can't be read for the comparison between the hosts", path.string()));
    all[name] = size_and_hash(*text);
    const std::string kind = path.extension().string();
    if (kind == ".gltf" || kind == ".glb")
        for (const std::string& each : named_by_gltf(*text))
            (void)read_sibling(path.parent_path(), each, all);
    if (kind == ".obj")
        for (const std::string& library : words_after("mtllib", *text))
            for (const std::string& each :
                 words_after("map_Kd", read_sibling(path.parent_path(), library, all)))
                (void)read_sibling(path.parent_path(), each, all);
    return all;
}

}  // namespace carousel::supervisor
