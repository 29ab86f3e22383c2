#include "parameters/parameter_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/user_input.hpp"
#include "parameters/parameter_range.hpp"

namespace carousel::ring {
namespace {

using namespace detail;
using nlohmann::json;

/// After rounding to f32, the length of a unit vector differs from 1 by at most about 2^-24. A vector whose
/// length differs from 1 by at most unit_rounding counts as a unit vector and is kept bit for bit.
constexpr f64 unit_rounding = 1e-7;
constexpr f64 unit_tolerance = 1e-3;

bool is_direction(const parameter& p) { return p.role == "direction"; }
void write_element(const parameter& p, std::span<std::byte> values, u32 index, f64 v) {
    std::byte* at = values.data() + p.offset + std::size_t{index} * element_size;
    if (p.kind == parameter_kind::number) {
        const f32 stored = static_cast<f32>(v);
        std::memcpy(at, &stored, sizeof stored);
    } else if (p.kind == parameter_kind::integer) {
        const i32 stored = static_cast<i32>(v);
        std::memcpy(at, &stored, sizeof stored);
    } else {
        const u32 stored = static_cast<u32>(v);
        std::memcpy(at, &stored, sizeof stored);
    }
}

f64 length_of(const f64* v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

/// Computes in double precision, from the values as f32, so that [1, 1, 1] gives exactly the bits of
/// 0.577350269F. If the bits could differ, one image would have two hashes. Returns false for [0, 0, 0], also
/// if the value becomes [0, 0, 0] only by rounding to f32.
bool normalise(f64* v) {
    for (int k = 0; k < 3; ++k) {
        volatile f32 rounded = static_cast<f32>(v[k]);  // g++ 12 at -O2 omits the rounding of two adjacent
                                                        // elements that it computes as one vector
        v[k] = rounded;
    }
    const f64 length = length_of(v);
    if (!(length > 0)) return false;
    if (std::abs(length - 1) <= unit_rounding) return true;
    for (int k = 0; k < 3; ++k) v[k] = v[k] / length;
    return true;
}

std::string expected_of(const parameter& p) {
    const auto several = [&](const char* one, const char* more) {
        return p.count == 1 ? std::string(one) : fmt::format("{} {}", p.count, more);
    };
    switch (p.kind) {
        case parameter_kind::number:
            return fmt::format("{} from {} to {}", several("a number", "numbers"), p.low, p.high);
        case parameter_kind::integer:
            return fmt::format("{} from {} to {}", several("a whole number", "whole numbers"), p.low, p.high);
        case parameter_kind::flag:
            return several("true or false", "of true or false");
        case parameter_kind::choice: {
            const std::string one = fmt::format("\"{}\"", fmt::join(p.choices, "\" or \""));
            return p.count == 1 ? one : fmt::format("{} of {}", p.count, one);
        }
    }
    return {};
}

[[noreturn]] void refuse_value(const parameter& p, const json& value, const std::string& expected) {
    throw config_error(fmt::format("{} = {}: expected {}", p.name, shown(value), expected));
}

/// Returns one element of the new value, as a number in the range of the parameter.
f64 element_from(const parameter& p, const json& whole, const json& one) {
    f64 v = std::numeric_limits<f64>::quiet_NaN();
    if (p.kind == parameter_kind::choice && one.is_string()) {
        const auto& word = one.get_ref<const std::string&>();
        const auto at = std::find(p.choices.begin(), p.choices.end(), word);
        if (at == p.choices.end())
            refuse_value(p, whole, expected_of(p) + did_you_mean_clause(word, p.choices));
        v = static_cast<f64>(at - p.choices.begin());
    } else if (p.kind == parameter_kind::flag && one.is_boolean()) {
        v = one.get<bool>() ? 1 : 0;
    } else if ((p.kind == parameter_kind::number || p.kind == parameter_kind::integer) && one.is_number()) {
        v = one.get<f64>();
    }
    if (!is_in_range(p, v)) refuse_value(p, whole, expected_of(p));
    return v;
}

/// Returns the shortest decimal fraction that is rounded to this f32: 0.1 and not 0.10000000149011612.
json shortest(f32 v) {
    const std::string text = fmt::format("{}", v);
    f64 out = v;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return static_cast<f32>(out) == v ? json(out) : json(f64{v});
}

json element_to(const parameter& p, std::span<const std::byte> values, u32 index) {
    const f64 v = parameter_schema::element_of(p, values, index);
    switch (p.kind) {
        case parameter_kind::number:
            return std::isfinite(v) ? shortest(static_cast<f32>(v)) : json();
        case parameter_kind::integer:
            return static_cast<i64>(v);
        case parameter_kind::flag:
            return v != 0;
        case parameter_kind::choice:
            return v < static_cast<f64>(p.choices.size()) ? json(p.choices[static_cast<std::size_t>(v)])
                                                          : json();
    }
    return {};
}

/// Compares the field `p` with the field that must have a larger value (parameter::below). Returns that field
/// if its value is not larger; null if it is larger or if there is no such field.
const parameter* not_below(const parameter_schema& s, const parameter& p,
                           std::span<const std::byte> values) noexcept {
    const parameter* other = p.below.empty() ? nullptr : s.find(p.below);
    if (other == nullptr || s.element_of(p, values) < s.element_of(*other, values)) return nullptr;
    return other;
}

}  // namespace

const parameter* parameter_schema::find(std::string_view name) const noexcept {
    const auto at =
        std::find_if(fields.begin(), fields.end(), [&](const parameter& p) { return p.name == name; });
    return at == fields.end() ? nullptr : &*at;
}

std::vector<std::string> parameter_schema::names() const {
    std::vector<std::string> out;
    std::transform(fields.begin(), fields.end(), std::back_inserter(out),
                   [](const parameter& p) { return p.name; });
    return out;
}

std::string parameter_schema::describe() const {
    return type.empty() ? "no parameters"
                        : fmt::format("{} ({} bytes: {})", type, bytes, fmt::join(names(), ", "));
}

std::vector<std::byte> parameter_schema::initial_values() const {
    std::vector<std::byte> values(bytes);
    for (const parameter& p : fields)
        for (u32 k = 0; k < p.count; ++k) write_element(p, values, k, p.initial[k]);
    return values;
}

void parameter_schema::set(std::span<std::byte> values, std::string_view name, const json& value) const {
    CAROUSEL_ASSERT(values.size() >= bytes);
    const parameter* p = find(name);
    if (p == nullptr)
        throw config_error(fmt::format("no parameter \"{}\"{}", name.substr(0, longest_shown),
                                       did_you_mean_clause(name, names())));
    f64 elements[most_elements] = {};
    if (p->count == 1) {
        elements[0] = element_from(*p, value, value);
    } else {
        if (!value.is_array() || value.size() != p->count)
            refuse_value(*p, value, "a list of " + expected_of(*p));
        for (u32 k = 0; k < p->count; ++k) elements[k] = element_from(*p, value, value[k]);
    }
    if (is_direction(*p) && !normalise(elements)) refuse_value(*p, value, "a direction other than [0, 0, 0]");
    for (u32 k = 0; k < p->count; ++k) write_element(*p, values, k, elements[k]);
}

void parameter_schema::check_values(std::span<const std::byte> values) const {
    for (const parameter& p : fields)
        if (const parameter* other = not_below(*this, p, values); other != nullptr)
            throw config_error(fmt::format("{} must be below {}", p.name, other->name));
}

json parameter_schema::values_json(std::span<const std::byte> values,
                                   std::span<const std::byte> only_where_other) const {
    json out = json::object();
    for (const parameter& p : fields) {
        const std::size_t size = std::size_t{p.count} * element_size;
        if (lies_within(p, values.size()) && lies_within(p, only_where_other.size()) &&
            std::memcmp(values.data() + p.offset, only_where_other.data() + p.offset, size) == 0)
            continue;
        json& at = out[p.name];
        if (p.count == 1)
            at = element_to(p, values, 0);
        else
            for (u32 k = 0; k < p.count; ++k) at.push_back(element_to(p, values, k));
    }
    return out;
}

bool parameter_schema::is_possible(std::span<const std::byte> values) const noexcept {
    if (values.size() < bytes) return false;
    for (const parameter& p : fields) {
        f64 v[most_elements] = {};
        for (u32 k = 0; k < std::min(p.count, most_elements); ++k) {
            v[k] = element_of(p, values, k);
            if (is_direction(p) ? !std::isfinite(v[k]) : !is_in_range(p, v[k])) return false;
        }
        if (is_direction(p) && !(std::abs(length_of(v) - 1) <= unit_tolerance)) return false;
        if (not_below(*this, p, values) != nullptr) return false;
    }
    return true;
}

f64 parameter_schema::element_of(const parameter& p, std::span<const std::byte> values, u32 index) noexcept {
    if (index >= p.count || !lies_within(p, values.size())) return 0;
    const std::byte* at = values.data() + p.offset + std::size_t{index} * element_size;
    if (p.kind == parameter_kind::number) {
        f32 v = 0;
        std::memcpy(&v, at, sizeof v);
        return v;
    }
    if (p.kind == parameter_kind::integer) {
        i32 v = 0;
        std::memcpy(&v, at, sizeof v);
        return v;
    }
    u32 v = 0;
    std::memcpy(&v, at, sizeof v);
    return v;
}

}  // namespace carousel::ring
