#include "viewer/web/requests.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"

namespace carousel::viewer::web {
using nlohmann::json;
namespace {

std::string lower(std::string_view text) {
    std::string out;
    for (const unsigned char c : text) out += static_cast<char>(std::tolower(c));
    return out;
}

/// The keys in the order in which they are applied. The order in the body has no effect: a ring is always
/// applied before its plane.
constexpr const char* picture_keys[] = {
    "stage",         "plane",           "channel",          "range",           "colours",
    "exposure",      "tone_map",        "compare",          "compare_plane",   "compare_channel",
    "compare_range", "compare_colours", "compare_exposure", "compare_tone_map"};
constexpr std::string_view compare_prefix = "compare_";
constexpr int ramp_colours = 17;  ///< number of colours from which a client draws the scale

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

json ramp_of(colour_map map) {
    json out = json::array();
    for (int k = 0; k < ramp_colours; ++k) {
        const colour c = colour_at(map, static_cast<f64>(k) / (ramp_colours - 1));
        out.push_back(fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b));
    }
    return out;
}

/// Applies a key of the style, without the prefix. Returns the forms that are expected if the value has none
/// of them, otherwise "".
const char* take_style(picture_style& style, std::string_view key, const std::string& value) {
    if (key == "range" && !read_range(value, style)) return range_forms;
    if (key == "colours" && !read_colours(value, style)) return colour_forms;
    if (key == "exposure" && !read_exposure(value, style)) return exposure_forms;
    if (key == "tone_map" && !read_tone_map(value, style)) return tone_map_forms;
    if (key == "channel") read_channel(value, style);
    return "";
}

/// Returns "" if the value was accepted, otherwise the reason why it was refused.
std::string take(picture_request& w, const std::string& key, const std::string& value,
                 const std::map<std::string, std::string>& rings) {
    const auto ring = rings.find(value);
    if ((key == "stage" || key == "compare") && !value.empty() && ring == rings.end()) {
        std::vector<std::string> names;
        for (const auto& [name, own] : rings) names.push_back(name);
        return fmt::format("no stage \"{}\" with an output{}", value, did_you_mean_clause(value, names));
    }
    if (key == "stage") {
        w.what.first = {value.empty() ? "" : ring->second, ""};
    } else if (key == "compare") {
        w.what.compare = value.empty() ? std::nullopt : std::optional(plane_choice{ring->second, ""});
    } else if (key == "plane") {
        w.what.first.plane = value;
    } else if (key == "compare_plane") {
        if (!w.what.compare) return "compare_plane: no second picture is shown";
        w.what.compare->plane = value;
    } else {
        const bool second = key.starts_with(compare_prefix);
        const char* forms = take_style(
            w.styles.of[second ? 1 : 0],
            second ? std::string_view(key).substr(compare_prefix.size()) : std::string_view(key), value);
        if (*forms != '\0') return fmt::format("{}: expected {}", key, forms);
    }
    return "";
}

/// Contains all keys, so that a client need not know the default values. (Messages between Carousel's
/// programs omit keys that have the default value.)
json field_json(const ring::parameter& p) {
    return {{"name", p.name},
            {"kind", ring::name_of(p.kind)},
            {"count", p.count},
            {"initial", p.initial},
            {"low", p.low},
            {"high", p.high},
            {"usual_low", p.usual_low},
            {"usual_high", p.usual_high},
            {"step", p.step},
            {"label", p.label},
            {"unit", p.unit},
            {"role", p.role},
            {"below", p.below},
            {"choices", p.choices}};
}

}  // namespace

bool is_own_host(std::string_view host, const std::vector<std::string>& names) {
    std::string name = lower(host);
    if (name.starts_with('[')) {
        const auto end = name.find(']');
        if (end == std::string::npos) return false;
        in6_addr a{};
        return ::inet_pton(AF_INET6, name.substr(1, end - 1).c_str(), &a) == 1;
    }
    if (const auto colon = name.find(':'); colon != std::string::npos) name.resize(colon);
    in_addr a{};
    if (name == "localhost" || ::inet_pton(AF_INET, name.c_str(), &a) == 1) return true;
    std::array<char, 256> own{};
    if (::gethostname(own.data(), own.size() - 1) == 0 && own[0] != '\0' && name == lower(own.data()))
        return true;
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& known) { return name == lower(known); });
}

bool is_open_to_any_host(std::string_view path) noexcept {
    return path == "/metrics" || path == "/healthz" || path == "/readyz";
}

std::optional<request_target> split_target(std::string_view target) noexcept {
    constexpr std::string_view scheme = "http://";
    request_target out;
    if (target.size() > scheme.size() && lower(target.substr(0, scheme.size())) == scheme) {
        target.remove_prefix(scheme.size());
        out.authority = target.substr(0, target.find_first_of("/?"));
        if (out.authority.empty()) return std::nullopt;
        target.remove_prefix(out.authority.size());
    } else if (!target.starts_with('/')) {
        return std::nullopt;
    }
    const auto mark = target.find('?');
    out.path = target.substr(0, mark);
    if (out.path.empty()) out.path = "/";
    if (mark != std::string_view::npos) out.query = target.substr(mark + 1);
    return out;
}

std::string_view query_value(std::string_view query, std::string_view key) noexcept {
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
            return pair.substr(key.size() + 1);
        query.remove_prefix(std::min(end + 1, query.size()));
    }
    return {};
}

json picture_request_json(const picture_request& w) {
    json out{{"stage", w.what.first.stage},
             {"plane", w.what.first.plane},
             {"compare", w.what.compare ? w.what.compare->stage : ""},
             {"compare_plane", w.what.compare ? w.what.compare->plane : ""}};
    for (int k = 0; k < 2; ++k) {
        const picture_style& style = w.styles.of[k];
        const std::string prefix(k == 0 ? "" : compare_prefix);
        out[prefix + "channel"] = channel_text(style);
        out[prefix + "range"] = range_text(style);
        out[prefix + "colours"] = colours_text(style);
        out[prefix + "exposure"] = exposure_text(style);
        out[prefix + "tone_map"] = viewer::name_of(style.tone);
    }
    return out;
}

std::optional<picture_request> read_picture_request(const std::string& body,
                                                    const std::map<std::string, std::string>& rings,
                                                    picture_request now, std::string& why) {
    const json asked = parse_json_or_discard(body, json_channel::message);
    if (!asked.is_object() || asked.empty()) {
        why = R"(the body is not a JSON object with members: expected {"stage": "NAME", ...})";
        return std::nullopt;
    }
    const std::vector<std::string> known(std::begin(picture_keys), std::end(picture_keys));
    for (const auto& [key, value] : asked.items()) {
        if (std::find(known.begin(), known.end(), key) == known.end())
            why = fmt::format("\"{}\" is not one of {}{}", key.substr(0, 100), fmt::join(known, ", "),
                              did_you_mean_clause(key, known));
        else if (!value.is_string())
            why = fmt::format("{}: expected a text", key);
        if (!why.empty()) return std::nullopt;
    }
    for (const char* key : picture_keys) {
        if (!asked.contains(key)) continue;
        why = take(now, key, asked.at(key).get<std::string>(), rings);
        if (!why.empty()) return std::nullopt;
    }
    return now;
}

json shown_json(const shown_picture& p) {
    json out{{"stage", p.stage},         {"plane", p.plane},   {"planes", p.planes},
             {"type", p.type},           {"x", p.x},           {"y", p.y},
             {"width", p.width},         {"height", p.height}, {"zoom", p.zoom},
             {"frame", p.ring_sequence}, {"values", nullptr},  {"maps", p.maps},
             {"channels", p.channels}};
    if (p.scale.of_values)
        out["values"] = {{"low", p.scale.low},
                         {"high", p.scale.high},
                         {"low_text", scale_text(p.scale.low)},
                         {"high_text", scale_text(p.scale.high)},
                         {"colours", name_of(p.scale.colours)},
                         {"ramp", has_range(p.scale.colours) ? ramp_of(p.scale.colours) : json::array()},
                         {"below", p.scale.below},
                         {"above", p.scale.above},
                         {"nan", p.scale.nan},
                         {"infinite", p.scale.infinite},
                         {"beyond", beyond_text(p.scale)}};
    out["carries"] = json::array();
    for (const auto& [name, value] : p.carried) out["carries"].push_back({{"name", name}, {"value", value}});
    return out;
}

std::string pixel_json(const std::optional<pointed_pixel>& p, const std::vector<shown_picture>& shown) {
    if (!p || p->which >= shown.size()) return "null";
    return dump({{"stage", shown[p->which].stage},
                 {"plane", shown[p->which].plane},
                 {"x", p->x},
                 {"y", p->y},
                 {"frame", p->ring_sequence},
                 {"text", p->text}});
}

json parameters_of(const view& v) {
    const ring::parameter_schema& schema = v.schema;
    // If the block was recreated and the supervisor has not reported the new schema yet, it is possible that
    // the old schema does not match the new bytes.
    if (v.phase == run_phase::waiting || !schema || schema.bytes != v.snap.parameter_bytes ||
        schema.bytes > v.snap.parameters.size())
        return {};
    const auto values = std::span<const std::byte>(v.snap.parameters).first(schema.bytes);
    if (!schema.is_possible(values)) return {};
    json fields = json::array();
    for (const ring::parameter& p : schema.fields) fields.push_back(field_json(p));
    return {{"type", schema.type},
            {"number", v.snap.parameter_number},
            {"from", v.snap.parameter_from},
            {"fields", fields},
            {"values", schema.values_json(values)}};
}

std::string parameters_json(const view& v) {
    return parameters_of(v).dump(-1, ' ', false, json::error_handler_t::replace);
}

json values_in(const std::string& body, std::string& why) {
    json values = parse_json_or_discard(body, json_channel::message);
    if (!values.is_object())
        why =
            R"(the body is not a JSON object: expected {"NAME": VALUE, ...}, with names of /parameters.json)";
    else if (values.empty())
        why = "the body names no parameter: /parameters.json lists them";
    else
        return values;
    return {};
}

}  // namespace carousel::viewer::web
