// The description itself: its validation and its JSON form. parameter_schema.cpp handles the values.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "parameters/parameter_range.hpp"
#include "parameters/parameter_schema.hpp"

namespace carousel::ring {
namespace {

using namespace detail;
using nlohmann::json;

constexpr std::size_t most_fields = 64, most_choices = 32, longest_name = 47;
constexpr std::array<const char*, 4> kinds = {"number", "integer", "flag", "choice"};
constexpr std::array<const char*, 6> roles = {"camera.eye", "camera.target", "camera.up",
                                              "camera.fov", "direction",     "hidden"};

template <std::size_t N>
std::vector<std::string> texts(const std::array<const char*, N>& all) {
    return {all.begin(), all.end()};
}

/// Returns true if the text consists only of letters, digits and the characters in `also`, and has 1 to
/// longest_name characters.
bool is_word(std::string_view text, std::string_view also) {
    return !text.empty() && text.size() <= longest_name && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               also.find(c) != std::string_view::npos;
    });
}

bool is_text(std::string_view text) {
    return text.size() <= longest_name &&
           std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

/// Returns the reason why the field by itself is invalid; "" if it is valid.
std::string fault_of(const parameter_schema& s, const parameter& p) {
    if (!is_word(p.name, "_"))
        return fmt::format("has an invalid name; expected 1 to {} letters, digits and _", longest_name);
    if (static_cast<std::size_t>(p.kind) >= kinds.size()) return "has an unknown kind";
    if (p.count < 1 || p.count > most_elements)
        return fmt::format("has {} elements; 1 to {} are possible", p.count, most_elements);
    if (p.offset % element_size != 0)
        return fmt::format("is at offset {}, which is not a multiple of {}", p.offset, element_size);
    if (!lies_within(p, s.bytes)) return fmt::format("is not within the {} bytes of the parameters", s.bytes);
    if (!is_text(p.label) || !is_text(p.unit))
        return fmt::format("has a label or unit of more than {} characters", longest_name);
    if (p.kind == parameter_kind::choice) {
        if (p.choices.empty() || p.choices.size() > most_choices)
            return fmt::format("has {} choices; 1 to {} are possible", p.choices.size(), most_choices);
        for (const std::string& c : p.choices)
            if (!is_word(c, "_-.") || std::count(p.choices.begin(), p.choices.end(), c) > 1)
                return fmt::format("has a choice that occurs twice or is not a word: \"{}\"", c);
    } else if (!p.choices.empty()) {
        return fmt::format("has choices, but is of the kind {}", name_of(p.kind));
    }
    const bool range = p.kind == parameter_kind::number || p.kind == parameter_kind::integer;
    const auto can_be = [&](f64 v) { return p.kind == parameter_kind::integer ? fits_i32(v) : fits_f32(v); };
    if (range && (!can_be(p.low) || !can_be(p.high) || !(p.low < p.high)))
        return fmt::format("can't be from {} to {}", p.low, p.high);
    if (p.usual_low != p.usual_high &&
        !(p.usual_low >= p.low && p.usual_low < p.usual_high && p.usual_high <= p.high))
        return fmt::format("is usually from {} to {}, but can be from {} to {}", p.usual_low, p.usual_high,
                           p.low, p.high);
    if (!fits_f32(p.usual_low) || !fits_f32(p.step) || p.step < 0)
        return "has a step or usual range that is not a number";
    if (p.initial.size() != p.count)
        return fmt::format("has {} initial values for {} elements", p.initial.size(), p.count);
    for (const f64 v : p.initial)
        if (!is_in_range(p, v)) return fmt::format("has the initial value {}, which is not permitted", v);
    return {};
}

/// Returns the reason why the field's use as a control, or its relation to other fields, is invalid; "" if
/// both are valid.
std::string fault_of_use(const parameter_schema& s, const parameter& p) {
    if (!p.role.empty() && std::find(roles.begin(), roles.end(), p.role) == roles.end())
        return fmt::format("has the unknown role \"{}\"{}", p.role.substr(0, longest_shown),
                           did_you_mean_clause(p.role, texts(roles)));
    const u32 needs = p.role.empty() || p.role == "hidden" ? p.count : p.role == "camera.fov" ? 1 : 3;
    if (!p.role.empty() && p.role != "hidden" && (p.kind != parameter_kind::number || p.count != needs))
        return fmt::format("has the role \"{}\", which needs {} elements of the kind number", p.role, needs);
    if (p.below.empty()) return {};
    const parameter* other = s.find(p.below);
    if (other == nullptr || other == &p)
        return fmt::format("must be below the field \"{}\", but there is no other field of that name",
                           p.below.substr(0, longest_shown));
    const auto single = [](const parameter& f) {
        return f.count == 1 && (f.kind == parameter_kind::number || f.kind == parameter_kind::integer);
    };
    return single(p) && single(*other)
               ? ""
               : fmt::format("must be below \"{}\", so both must be single numbers", p.below);
}

const json& member(const json& j, const char* key) {
    static const json absent;
    const auto at = j.find(key);
    return at == j.end() ? absent : *at;
}

[[noreturn]] void refuse_json(const char* key, const json& value) {
    throw config_error(
        fmt::format("parameters: not a description of parameters: {} = {}", key, shown(value)));
}

std::string text_of(const json& j, const char* key) {
    const json& v = member(j, key);
    if (v.is_null()) return {};
    if (!v.is_string()) refuse_json(key, v);
    return v.get<std::string>();
}

f64 number_of(const json& j, const char* key, f64 fallback) {
    const json& v = member(j, key);
    if (v.is_null()) return fallback;
    if (!v.is_number()) refuse_json(key, v);
    return v.get<f64>();
}

u32 count_of(const json& j, const char* key, u32 fallback) {
    const f64 v = number_of(j, key, fallback);
    if (!(v >= 0 && v <= std::numeric_limits<u32>::max() && is_whole(v))) refuse_json(key, member(j, key));
    return static_cast<u32>(v);
}

const json& list_of(const json& j, const char* key, std::size_t most) {
    static const json none = json::array();
    const json& v = member(j, key);
    if (v.is_null()) return none;
    if (!v.is_array() || v.size() > most) refuse_json(key, v);
    return v;
}

parameter field_from(const json& j) {
    if (!j.is_object()) refuse_json("fields", j);
    parameter p;
    p.name = text_of(j, "name");
    const std::string kind = j.contains("kind") ? text_of(j, "kind") : kinds.front();
    const auto at = std::find(kinds.begin(), kinds.end(), kind);
    if (at == kinds.end()) refuse_json("kind", member(j, "kind"));
    p.kind = static_cast<parameter_kind>(at - kinds.begin());
    p.offset = count_of(j, "offset", p.offset);
    p.count = count_of(j, "count", p.count);
    if (const json& values = list_of(j, "initial", most_elements); !values.empty()) {
        p.initial.clear();
        for (const json& v : values) {
            if (!v.is_number()) refuse_json("initial", values);
            p.initial.push_back(v.get<f64>());
        }
    }
    p.low = number_of(j, "low", p.low);
    p.high = number_of(j, "high", p.high);
    p.usual_low = number_of(j, "usual_low", p.usual_low);
    p.usual_high = number_of(j, "usual_high", p.usual_high);
    p.step = number_of(j, "step", p.step);
    p.label = text_of(j, "label");
    p.unit = text_of(j, "unit");
    p.role = text_of(j, "role");
    p.below = text_of(j, "below");
    for (const json& c : list_of(j, "choices", most_choices)) {
        if (!c.is_string()) refuse_json("choices", c);
        p.choices.push_back(c.get<std::string>());
    }
    return p;
}

json field_to(const parameter& p) {
    const parameter usual;
    json j{{"name", p.name}, {"kind", name_of(p.kind)}, {"offset", p.offset}};
    const auto put = [&](const char* key, const auto& value, const auto& as_ever) {
        if (value != as_ever) j[key] = value;
    };
    put("count", p.count, usual.count);
    put("initial", p.initial, usual.initial);
    put("low", p.low, usual.low);
    put("high", p.high, usual.high);
    put("usual_low", p.usual_low, usual.usual_low);
    put("usual_high", p.usual_high, usual.usual_high);
    put("step", p.step, usual.step);
    put("label", p.label, usual.label);
    put("unit", p.unit, usual.unit);
    put("role", p.role, usual.role);
    put("below", p.below, usual.below);
    put("choices", p.choices, usual.choices);
    return j;
}

}  // namespace

const char* name_of(parameter_kind k) noexcept {
    const auto index = static_cast<std::size_t>(k);
    return index < kinds.size() ? kinds[index] : "unknown";
}

void parameter_schema::check() const {
    const auto refuse = [&](const std::string& why) {
        throw config_error(fmt::format("parameters {}: {}",
                                       type.empty() ? "without a name" : type.substr(0, longest_shown), why));
    };
    if (!is_word(type, "_-."))
        refuse(fmt::format("expected a type of 1 to {} letters, digits, _, - and .", longest_name));
    if (bytes == 0 || bytes > shm::max_parameter_bytes)
        refuse(fmt::format("{} bytes; 1 to {} are possible", bytes, shm::max_parameter_bytes));
    if (fields.size() > most_fields)
        refuse(fmt::format("{} fields; {} are possible", fields.size(), most_fields));
    for (const parameter& p : fields) {
        std::string why = fault_of(*this, p);
        if (why.empty()) why = fault_of_use(*this, p);
        if (!why.empty()) refuse(fmt::format("\"{}\" {}", p.name.substr(0, longest_shown), why));
    }
    for (const parameter& p : fields) {
        for (const parameter& o : fields) {
            if (&p == &o) break;
            if (p.name == o.name) refuse(fmt::format("\"{}\" occurs twice; names must differ", p.name));
            if (p.offset < o.offset + o.count * element_size && o.offset < p.offset + p.count * element_size)
                refuse(fmt::format("\"{}\" and \"{}\" overlap", o.name, p.name));
        }
    }
    const std::vector<std::byte> values = initial_values();
    check_values(values);
    if (!is_possible(values)) refuse("a direction's initial value is not a unit vector");
}

json parameter_schema::to_json() const {
    json j{{"type", type}, {"bytes", bytes}, {"fields", json::array()}};
    for (const parameter& p : fields) j["fields"].push_back(field_to(p));
    return j;
}

parameter_schema parameter_schema::from_json(const json& j) {
    if (!j.is_object())
        throw config_error(fmt::format("parameters: not a description of parameters: {}", shown(j)));
    parameter_schema s;
    s.type = text_of(j, "type");
    s.bytes = count_of(j, "bytes", 0);
    for (const json& field : list_of(j, "fields", most_fields)) s.fields.push_back(field_from(field));
    s.check();
    return s;
}

}  // namespace carousel::ring
