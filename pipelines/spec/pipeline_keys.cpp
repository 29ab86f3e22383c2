#include "spec/pipeline_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "core/did_you_mean.hpp"
#include "ring/words.hpp"
#include "run/directory.hpp"
#include "shm/control_block.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {
namespace {

constexpr u64 hour_ms = 3'600'000;
constexpr u64 no_limit = static_cast<u64>(std::numeric_limits<i64>::max());
constexpr u32 max_device = 63;

bool is_stage_name(const std::string& name) {
    return !name.empty() && name.size() <= max_name &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

bool is_device(const std::string& text) {
    if (text == "auto" || text == "cpu") return true;
    if (!text.starts_with("cuda:") || text.size() < 6 || text.size() > 7) return false;
    const std::string digits = text.substr(5);
    return std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) &&
           static_cast<u32>(std::stoi(digits)) <= max_device;
}

std::string read_device(section_reader& r, const std::string& fallback) {
    const std::string expected = "\"auto\", \"cpu\" or \"cuda:N\" with the number of a GPU";
    const std::string device = r.text("device", fallback, expected);
    if (is_device(device)) return device;
    section_reader::wrong("device", *r.take("device"), expected + did_you_mean_clause(device, {"auto", "cpu", "cuda:0"}));
}

void read_size(section_reader& r, pipeline& p) {
    const document_entry* e = r.take("size");
    if (e == nullptr) return;
    const std::string expected = fmt::format("[width, height], each from 1 to {}", max_extent);
    if (!e->value.is_array() || e->value.size() != 2) section_reader::wrong("size", *e, expected);
    u32* const sides[] = {&p.width, &p.height};
    for (std::size_t k = 0; k < 2; ++k) {
        const nlohmann::json& side = e->value[k];
        if (!side.is_number_integer() || side.get<i64>() < 1 || side.get<i64>() > max_extent)
            section_reader::wrong("size", *e, expected);
        *sides[k] = side.get<u32>();
    }
}

/// Words of a command line, as a shell would split them: blanks, '...', "..." and backslashes; no expansion.
std::vector<std::string> shell_words(const std::string& text, const document_entry& e) {
    std::vector<std::string> words;
    bool inside = false;
    char quote = 0;
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        if (quote == 0 && (c == ' ' || c == '\t')) {
            inside = false;
            continue;
        }
        if (!inside) words.emplace_back();
        inside = true;
        if (c == '\\' && quote != '\'') {
            if (k + 1 == text.size()) section_reader::wrong("prefix", e, "something behind the last backslash");
            words.back() += text[++k];
        } else if (quote == 0 && (c == '"' || c == '\'')) {
            quote = c;
        } else if (quote != 0 && c == quote) {
            quote = 0;
        } else {
            words.back() += c;
        }
    }
    if (quote != 0) section_reader::wrong("prefix", e, "a closing quote");
    return words;
}

std::vector<std::string> read_prefix(section_reader& r) {
    const document_entry* e = r.take("prefix");
    if (e == nullptr) return {};
    if (e->value.is_string()) return shell_words(e->value.get<std::string>(), *e);
    return r.texts("prefix", "a command such as \"gdb --args\", or a list of its words");
}

/// 0: none. Less than 10 ms is what the supervisor can't tell from its own ticks.
u32 read_frame_timeout(section_reader& r, u32 fallback) {
    const document_entry* e = r.take("frame_timeout_ms");
    if (e == nullptr) return fallback;
    const bool fits = e->value.is_number_unsigned() || (e->value.is_number_integer() && e->value.get<i64>() >= 0);
    const u64 ms = fits ? e->value.get<u64>() : 1;
    if (ms != 0 && (ms < 10 || ms > hour_ms))
        section_reader::wrong("frame_timeout_ms", *e, fmt::format("a whole number from 10 to {}, or 0 for none", hour_ms));
    return static_cast<u32>(ms);
}

/// true: any number of frames; false: none.
u64 read_allowed(section_reader& r) {
    const document_entry* e = r.take("allow_dead_letters");
    if (e == nullptr) return 0;
    if (e->value.is_boolean()) return e->value.get<bool>() ? ~u64{0} : 0;
    if (!e->value.is_number_integer() || e->value.get<i64>() < 0)
        section_reader::wrong("allow_dead_letters", *e, "true, false, or how many frames may be given up");
    return e->value.get<u64>();
}

std::string read_stage_name(section_reader& r, const document_section& s) {
    const document_entry* e = r.take("name");
    if (e == nullptr) refuse(s.at, s.title + " has no name; expected e.g. name = \"geometry\"");
    const std::string expected = fmt::format("a name of 1 to {} letters, digits, - and _", max_name);
    const std::string name = r.text("name", "", expected);
    if (!is_stage_name(name)) section_reader::wrong("name", *e, expected);
    if (name == "pipeline" || name == "parameters" || name == "link")
        section_reader::wrong("name", *e, "another name: this one stands for a section of the file");
    return name;
}

std::string read_run(section_reader& r, const document_section& s) {
    const document_entry* e = r.take("run");
    if (e == nullptr) refuse(s.at, s.title + " does not say what to run; expected e.g. run = \"carousel-geometry\", or a path");
    std::string run = r.text("run", "", "the name or path of a program");
    if (run.empty() || run.find('\0') != std::string::npos) section_reader::wrong("run", *e, "the name or path of a program");
    return run;
}

}  // namespace

const std::vector<std::string>& stage_keys() {
    static const std::vector<std::string> keys = {"name",    "run",     "inputs",       "device",   "in_flight", "instances",
                                                  "standby", "restart", "max_attempts", "optional", "group",     "prefix",
                                                  "isolation", "frame_timeout_ms"};
    return keys;
}

void read_pipeline_keys(const document_section& s, pipeline& p) {
    section_reader r(s);
    p.name = r.text("name", p.name);
    if (!run::is_run_name(p.name)) {
        const std::string expected = "a name of 1 to 40 letters, digits, -, _ and inner dots";
        if (const document_entry* e = r.take("name"); e != nullptr) section_reader::wrong("name", *e, expected);
        refuse(s.at,
               fmt::format("the file's name makes no pipeline name (\"{}\"); expected [pipeline] name = {}", p.name, expected));
    }
    p.device = read_device(r, p.device);
    read_size(r, p);
    p.frame_timeout_ms = read_frame_timeout(r, p.frame_timeout_ms);
    p.stall_timeout_ms = static_cast<u32>(r.integer("stall_timeout_ms", p.stall_timeout_ms, 0, hour_ms));
    p.latest_lease_ms = static_cast<u32>(r.integer("latest_lease_ms", p.latest_lease_ms, 1, hour_ms));
    p.supervisor_grace_s = r.number("supervisor_grace_s", p.supervisor_grace_s, 0, hour_ms / 1000.0);
    p.fps = r.number("fps", p.fps, 0, 100'000);
    p.frames = r.integer("frames", p.frames, 0, no_limit);
    p.allow_dead_letters = read_allowed(r);
    p.isolation = static_cast<isolation_kind>(r.choice("isolation", 0, {"process", "mps"}));
    r.refuse_unknown();
    for (const auto& [key, entry] : s.keys) p.key_at[key] = entry.key_at;
}

stage_spec read_stage_keys(const document_section& s, const pipeline& p) {
    section_reader r(s);
    stage_spec out;
    out.at = s.at;
    out.name = read_stage_name(r, s);
    out.run = read_run(r, s);
    out.inputs = r.texts("inputs", "a list of stages' names, e.g. [\"vertex\"]");
    out.device = read_device(r, p.device);
    out.in_flight = static_cast<u32>(r.integer("in_flight", out.in_flight, 1, max_in_flight));
    out.instances = static_cast<u32>(r.integer("instances", out.instances, 1, max_instances));
    out.standby = r.flag("standby", out.standby);
    out.restart = static_cast<restart_policy>(r.choice("restart", 0, {"always", "on-failure", "no"}));
    out.max_attempts = static_cast<u32>(r.integer("max_attempts", out.max_attempts, 1, ring::max_failures));
    out.frame_timeout_ms = read_frame_timeout(r, p.frame_timeout_ms);
    out.optional = r.flag("optional", out.optional);
    out.group = static_cast<group_kind>(r.choice("group", 0, {"blocking", "latest"}));
    out.isolation = static_cast<isolation_kind>(r.choice("isolation", static_cast<u32>(p.isolation), {"process", "mps"}));
    out.prefix = read_prefix(r);
    for (const auto& [key, entry] : s.keys) {
        out.key_at[key] = entry.key_at;
        if (r.known().count(key) == 0) out.settings[key] = entry.value;
    }
    return out;
}

link_spec read_link_keys(const document_section& s) {
    section_reader r(s);
    link_spec out;
    out.at = s.at;
    if (s.find("window") != nullptr) out.window = static_cast<u32>(r.integer("window", 0, min_window, shm::max_window));
    (void)r.take("window");
    out.memory = static_cast<link_memory>(r.choice("memory", 0, {"vmm", "ipc"}));
    r.refuse_unknown();
    for (const auto& [key, entry] : s.keys) out.key_at[key] = entry.key_at;
    return out;
}

}  // namespace carousel::supervisor
