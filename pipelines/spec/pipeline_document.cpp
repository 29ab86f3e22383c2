#include "spec/pipeline_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/json_text.hpp"
#include "spec/pipeline_file.hpp"

// The library has assertions about its input that a file may violate ("[[[stage]]]"). Here a violated
// assertion becomes an error in every build, and not an abort or an assumption of the optimiser.

namespace carousel::supervisor {

struct toml_assertion {};
[[noreturn]] static void refuse_assertion() { throw toml_assertion(); }

}  // namespace carousel::supervisor

#define TOML_ASSERT(expression) \
    (static_cast<bool>(expression) ? static_cast<void>(0) : ::carousel::supervisor::refuse_assertion())
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_MAX_NESTED_VALUES 32  // the library destroys nested values recursively
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <cmath>
#include <filesystem>

#include "core/user_input.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

source_position place(const std::string& file, const toml::source_region& region) {
    return {file, static_cast<u32>(region.begin.line), static_cast<u32>(region.begin.column), ""};
}

/// Converts a TOML value to JSON, with at most `depth` nested arrays and tables. `key` is for messages.
json to_json(const toml::node& node, const std::string& key, const std::string& file,
             u32 depth = max_settings_depth) {
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* whole = node.as_integer()) return whole->get();
    if (const auto* flag = node.as_boolean()) return flag->get();
    if (const auto* number = node.as_floating_point()) {
        if (!std::isfinite(number->get())) refuse(place(file, node.source()), key + ": not a finite number");
        return number->get();
    }
    if (depth == 0 && (node.is_array() || node.is_table()))
        refuse(place(file, node.source()),
               fmt::format("{}: lists and tables are nested more than {} deep", key, max_settings_depth));
    if (const auto* array = node.as_array()) {
        json out = json::array();
        for (const toml::node& each : *array) out.push_back(to_json(each, key, file, depth - 1));
        return out;
    }
    if (const auto* table = node.as_table()) {
        json out = json::object();
        for (const auto& [name, each] : *table)
            out[std::string(name.str())] = to_json(each, key, file, depth - 1);
        return out;
    }
    refuse(place(file, node.source()),
           key + ": a date or time; expected a text in quotes, a number, true or false, or a list of them");
}

document_section section_from(const toml::table& table, std::string title, const std::string& file) {
    document_section s;
    s.title = std::move(title);
    s.at = place(file, table.source());
    for (const auto& [name, node] : table) {
        const std::string key(name.str());
        s.keys[key] = {to_json(node, key, file), place(file, name.source()), place(file, node.source())};
    }
    return s;
}

void read_stages(document& d, const toml::node& node) {
    const toml::array* list = node.as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table))
        refuse(place(d.file, node.source()),
               "stage: expected [[stage]] with double brackets, once per stage");
    for (const toml::node& each : *list) {
        d.stages.push_back(section_from(*each.as_table(), "", d.file));
        d.stages.back().title = stage_title(d.stages.back(), d.stages.size() - 1);
    }
}

/// Reads named sections: `form` is "[link.STAGE]", `meaning` describes such a section.
void read_named(std::map<std::string, document_section>& to, const toml::node& node, const std::string& kind,
                const std::string& form, const char* meaning, const std::string& file) {
    const toml::table* all = node.as_table();
    if (all == nullptr)
        refuse(place(file, node.source()), fmt::format("{}: expected {}, {}", kind, form, meaning));
    for (const auto& [name, each] : *all) {
        const std::string word(name.str());
        const toml::table* one = each.as_table();
        if (one == nullptr)
            refuse(
                place(file, name.source()),
                fmt::format("[{}] can have no keys of its own; expected {} above \"{}\"", kind, form, word));
        // [link.STAGE.OUTPUT] is a table in [link.STAGE], which may be absent.
        document_section own = section_from(*one, fmt::format("[{}.{}]", kind, word), file);
        for (const auto& [inner, node_of] : *one) {
            const toml::table* ring = kind == "link" ? node_of.as_table() : nullptr;
            if (ring == nullptr || ring->is_inline()) continue;
            const std::string both = fmt::format("{}.{}", word, inner.str());
            to[both] = section_from(*ring, fmt::format("[{}.{}]", kind, both), file);
            own.keys.erase(std::string(inner.str()));
        }
        if (!own.keys.empty() || one->empty()) to[word] = std::move(own);
    }
}

const toml::table& table_or_refuse(const toml::node& node, const std::string& name, const std::string& file) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
        refuse(place(file, node.source()), fmt::format("{0}: expected a section [{0}]", name));
    return *table;
}

std::vector<std::string> stage_names(const document& d) {
    std::vector<std::string> names;
    for (const document_section& s : d.stages) names.push_back(s.text("name"));
    return names;
}

/// Sets a key; for a path of more than one key, sets the value inside the existing table.
void put(document_section& s, const std::vector<std::string>& keys, const json& value,
         const source_position& at) {
    if (keys.size() - 1 + json_depth(value) > max_settings_depth)
        refuse(at, fmt::format("a path of {} keys is too deep; settings can nest at most {} lists and tables",
                               keys.size(), max_settings_depth));
    document_entry& entry = s.keys[keys.front()];
    json* where = &entry.value;
    for (std::size_t k = 1; k < keys.size(); ++k) {
        if (!where->is_object()) *where = json::object();
        where = &(*where)[keys[k]];
    }
    *where = value;
    entry.key_at = entry.value_at = at;
}

std::vector<std::string> split_path(const key_override& o, const source_position& at) {
    std::vector<std::string> parts(1);
    for (const char c : o.path) {
        if (c == '.')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    if (std::any_of(parts.begin(), parts.end(), [](const std::string& p) { return p.empty(); }))
        refuse(at, fmt::format("\"{}\" is not a key; expected KEY, STAGE.KEY or link.STAGE.KEY", o.path));
    return parts;
}

bool is_source(const document_section& s) {
    const document_entry* inputs = s.find("inputs");
    return inputs == nullptr || inputs->value.empty();
}

bool is_display(const document_section& s) {
    return std::filesystem::path(s.text("run")).filename() == "carousel-display";
}

/// With several displays, each gets a folder of its own: "out/frame_%d.png" becomes "out/NAME/frame_%d.png".
json for_display(const json& pattern, const document_section& s) {
    const std::string text = pattern.is_string() ? pattern.get<std::string>() : "";
    if (text.empty() || text == "none") return pattern;
    const std::filesystem::path path(text);
    return (path.parent_path() / s.text("name") / path.filename()).string();
}

bool writes_nothing(const document_section& s) {
    const document_entry* out = s.find("out");
    return out != nullptr && out->value.is_string() && (out->value == "" || out->value == "none");
}

/// Displays that write pictures. A display that is configured to write no pictures is left unchanged, unless
/// it is the only one.
std::vector<document_section*> displays_of(document& d, const source_position& at) {
    std::vector<document_section*> all, writing;
    std::string names;
    for (document_section& s : d.stages) {
        if (!is_display(s)) continue;
        all.push_back(&s);
        if (!writes_nothing(s)) writing.push_back(&s);
        names += (names.empty() ? "" : ", ") + s.text("name");
    }
    if (!writing.empty() || all.size() == 1) return writing.empty() ? all : writing;
    if (all.empty()) refuse(at, fmt::format("no stage of {} runs carousel-display", d.file));
    refuse(at, fmt::format("several displays of {} can write pictures; choose one, e.g. --out "
                           "'{}=frame_%05d.png' (the displays are {})",
                           d.file, all.front()->text("name"), names));
}

void apply_to_displays(document& d, const key_override& o, const source_position& at) {
    const bool nothing = o.path == "out" && (o.value == "" || o.value == "none");
    if (nothing) {  // always possible, even for a pipeline without a display
        for (document_section& s : d.stages)
            if (is_display(s)) put(s, {o.path}, o.value, at);
        return;
    }
    const std::vector<document_section*> meant = displays_of(d, at);
    for (document_section* s : meant)
        put(*s, {o.path}, meant.size() > 1 && o.path == "out" ? for_display(o.value, *s) : o.value, at);
}

void apply_to_hosts(document& d, const key_override& o, const source_position& at) {
    if (d.hosts.empty())
        refuse(at, fmt::format("{} has no section [hosts.NAME]; set the key in the stage of a hand-written "
                               "link (carousel-send, carousel-receive): {} = {}",
                               d.file, o.path, o.value.dump()));
    for (auto& [name, section] : d.hosts) put(section, {o.path}, o.value, at);
}

void apply_to_many(document& d, const key_override& o, const source_position& at) {
    if (o.where == key_override::scope::displays) return apply_to_displays(d, o, at);
    if (o.where == key_override::scope::hosts) return apply_to_hosts(d, o, at);
    if (std::none_of(d.stages.begin(), d.stages.end(), is_source))
        refuse(at, fmt::format("{} has no source (a stage without inputs)", d.file));
    for (document_section& s : d.stages)
        if (is_source(s)) put(s, {o.path}, o.value, at);
}

/// Returns the number of characters of the string that begins at the front of `text`, its quotes included.
std::size_t length_of_string(std::string_view text) noexcept {
    const char quote = text.front();
    const std::string_view three = quote == '"' ? R"(""")" : "'''";
    const bool many_lines = text.starts_with(three);
    for (std::size_t k = many_lines ? 3 : 1; k < text.size(); ++k) {
        if (text[k] == '\\' && quote == '"')
            ++k;
        else if (many_lines && text.substr(k).starts_with(three))
            return k + 3;
        else if (!many_lines && (text[k] == quote || text[k] == '\n'))
            return k + 1;
    }
    return text.size();
}

bool separates_keys(char c) noexcept {
    return std::string_view("=,[]{}\n").find(c) != std::string_view::npos;
}

}  // namespace

const document_entry* document_section::find(const std::string& key) const noexcept {
    const auto found = keys.find(key);
    return found == keys.end() ? nullptr : &found->second;
}

std::string document_section::text(const std::string& key) const {
    const document_entry* e = find(key);
    return e != nullptr && e->value.is_string() ? e->value.get<std::string>() : "";
}

std::string stage_title(const document_section& s, std::size_t index) {
    const std::string name = s.text("name");
    return name.empty() ? fmt::format("stage number {}", index + 1) : fmt::format("stage \"{}\"", name);
}

document read_document(const std::string& text, const std::string& file) {
    document d;
    check_toml_text(text, file);
    d.file = file;
    d.pipeline.title = "[pipeline]";
    d.parameters.title = "[parameters]";
    d.pipeline.at = d.parameters.at = {file, 0, 0, ""};
    toml::table root;
    try {
        root = toml::parse(text);
    } catch (const toml::parse_error& e) {
        refuse(place(file, e.source()), fmt::format("not TOML: {}", e.description()));
    } catch (const toml_assertion&) {
        refuse({file, 0, 0, ""},
               "not TOML: a header or a key is malformed; expected e.g. [pipeline], [[stage]], key = value");
    }
    for (const auto& [name, node] : root) {
        const std::string key(name.str());
        if (key == "pipeline")
            d.pipeline = section_from(table_or_refuse(node, key, file), "[pipeline]", file);
        else if (key == "parameters")
            d.parameters = section_from(table_or_refuse(node, key, file), "[parameters]", file);
        else if (key == "stage")
            read_stages(d, node);
        else if (key == "link")
            read_named(d.links, node, key, "[link.STAGE]", "the output ring of the stage of that name", file);
        else if (key == "hosts")
            read_named(d.hosts, node, key, "[hosts.NAME]", "a machine that stages run on", file);
        else
            refuse(place(file, name.source()),
                   fmt::format("unknown section or key \"{}\"; expected [pipeline], [parameters], [[stage]], "
                               "[link.STAGE] or [hosts.NAME]{}",
                               key,
                               key == "scene" ? std::string("; keys of [scene] are now in [parameters]")
                                              : did_you_mean_clause(key, {"pipeline", "parameters", "stage",
                                                                          "link", "hosts"})));
    }
    return d;
}

void apply_override(document& d, const key_override& o) {
    const source_position at{d.file, 0, 0, o.option};
    if (o.where != key_override::scope::path) return apply_to_many(d, o, at);
    std::vector<std::string> path = split_path(o, at);
    const std::string first = path.front();
    if (path.size() == 1) return put(d.pipeline, path, o.value, at);
    path.erase(path.begin());
    if (first == "pipeline") return put(d.pipeline, path, o.value, at);
    if (first == "parameters") return put(d.parameters, path, o.value, at);
    if (first == "link" || first == "hosts") {
        if (path.size() < 2)
            refuse(at, first == "link" ? "expected link.STAGE.KEY, e.g. link.fragment.window"
                                       : "expected hosts.NAME.KEY, e.g. hosts.b.address");
        std::string name = path.front();
        path.erase(path.begin());
        if (first == "link" && path.size() > 1) {  // link.STAGE.OUTPUT.KEY
            name += "." + path.front();
            path.erase(path.begin());
        }
        auto [section, added] = (first == "link" ? d.links : d.hosts).try_emplace(name);
        if (added) {
            section->second.title = fmt::format("[{}.{}]", first, name);
            section->second.at = at;
        }
        return put(section->second, path, o.value, at);
    }
    const auto stage = std::find_if(d.stages.begin(), d.stages.end(),
                                    [&](const document_section& s) { return s.text("name") == first; });
    if (stage == d.stages.end()) {
        std::vector<std::string> known = stage_names(d);
        refuse(at, fmt::format("no stage \"{}\" in {}; its stages are {}{}", first, d.file,
                               fmt::join(known, ", "), did_you_mean_clause(first, known)));
    }
    put(*stage, path, o.value, at);
}

// TOML forbids control characters, and the library assumes in some places that there are none. A key "a.b.c"
// makes a table per part; the library destroys them recursively, so a key of many thousand parts overflows
// the stack. The dots of one key are counted here: all dots between two separators, outside of strings and
// comments.
void check_toml_text(const std::string& text, const std::string& file) {
    u32 line = 1, column = 1, dots = 0;
    std::size_t opaque_until = 0;  // the end of the string or comment that is being skipped
    for (std::size_t k = 0; k < text.size(); ++k) {
        const char c = text[k];
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7F)
            refuse({file, line, column, ""},
                   fmt::format("not TOML: found the control character 0x{:02x}", byte));
        if (k >= opaque_until) {
            if (c == '"' || c == '\'') opaque_until = k + length_of_string(std::string_view(text).substr(k));
            if (c == '#') opaque_until = std::min(text.find('\n', k), text.size());
            if (separates_keys(c)) dots = 0;
            if (c == '.' && ++dots >= max_settings_depth)
                refuse({file, line, column, ""},
                       fmt::format("a key of more than {} parts", max_settings_depth));
        }
        column = c == '\n' ? 1 : column + 1;
        line += c == '\n' ? 1U : 0U;
    }
}

}  // namespace carousel::supervisor
