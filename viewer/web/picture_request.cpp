#include "viewer/web/picture_request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/user_input.hpp"

namespace carousel::viewer::web {

using nlohmann::json;

namespace {

/// In the order in which they are applied: a ring comes before its plane, regardless of their order in the
/// body.
constexpr const char* picture_keys[] = {"stage",   "plane",         "range",         "colours",
                                        "compare", "compare_plane", "compare_range", "compare_colours"};
constexpr int ramp_colours = 17;  ///< number of colours of a map, for a client that draws the scale

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

json ramp_of(colour_map map) {
    json out = json::array();
    for (int k = 0; k < ramp_colours; ++k) {
        const colour c = colour_at(map, static_cast<f64>(k) / (ramp_colours - 1));
        out.push_back(fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b));
    }
    return out;
}

/// Returns "" if the value was accepted, else the reason.
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
    } else if (key == "range" || key == "compare_range") {
        if (!read_range(value, w.styles.of[key == "range" ? 0 : 1]))
            return fmt::format("{}: expected auto, extremes or LOW..HIGH", key);
    } else if (key == "colours" || key == "compare_colours") {
        if (!read_colours(value, w.styles.of[key == "colours" ? 0 : 1]))
            return fmt::format("{}: expected auto, grey or viridis", key);
    }
    return "";
}

}  // namespace

json picture_request_json(const picture_request& w) {
    return {{"stage", w.what.first.stage},
            {"plane", w.what.first.plane},
            {"range", range_text(w.styles.of[0])},
            {"colours", colours_text(w.styles.of[0])},
            {"compare", w.what.compare ? w.what.compare->stage : ""},
            {"compare_plane", w.what.compare ? w.what.compare->plane : ""},
            {"compare_range", range_text(w.styles.of[1])},
            {"compare_colours", colours_text(w.styles.of[1])}};
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
             {"frame", p.ring_sequence}, {"values", nullptr}};
    if (p.scale.of_values)
        out["values"] = {{"low", p.scale.low},
                         {"high", p.scale.high},
                         {"low_text", scale_text(p.scale.low)},
                         {"high_text", scale_text(p.scale.high)},
                         {"colours", name_of(p.scale.colours)},
                         {"ramp", ramp_of(p.scale.colours)},
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

}  // namespace carousel::viewer::web
