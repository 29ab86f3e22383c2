#include "viewer/web/parameters.hpp"

#include <span>

#include "core/json.hpp"
#include "core/json_text.hpp"

namespace carousel::viewer::web {

using nlohmann::json;

namespace {

/// Contains all keys, so that a client need not know the defaults omitted from the messages between our own
/// programs.
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

json parameters_of(const view& v) {
    const ring::parameter_schema& schema = v.schema;
    // Between a block's recreation and the supervisor's report on it, the old schema may not match the new
    // bytes.
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
