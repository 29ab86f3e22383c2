#include "supervisor/plan/compared_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "ledger/ledger.hpp"

namespace carousel::supervisor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using names = std::set<std::string>;

json size_and_hash(const std::string& text) {
    return {{"bytes", text.size()},
            {"hash", fmt::format("{:016x}", telemetry::hash_bytes(std::as_bytes(std::span(text))))}};
}

/// Converts "a%20b" to "a b", in the way that the mesh reader decodes a URI.
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

/// Returns the JSON of a .gltf file, or of a .glb file, where it is the first chunk, after five words.
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

/// Returns the names after `word` in the lines of an OBJ or MTL file; if there are options, the last word.
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
