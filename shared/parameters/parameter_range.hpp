#pragma once
// Internal to the schema: the valid values of one element of a parameter. Only for parameter_schema.cpp and
// parameter_description.cpp.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/json.hpp"
#include "parameters/parameter_schema.hpp"

namespace carousel::ring::detail {

inline constexpr u32 most_elements = 4, element_size = 4;
inline constexpr std::size_t longest_shown = 80;

inline bool is_whole(f64 v) noexcept { return v == std::trunc(v); }
inline bool fits_f32(f64 v) noexcept {
    return std::isfinite(v) && std::abs(v) <= f64{std::numeric_limits<f32>::max()};
}
inline bool fits_i32(f64 v) noexcept {
    return is_whole(v) && v >= std::numeric_limits<i32>::min() && v <= std::numeric_limits<i32>::max();
}

/// The ends of the range are compared in their stored form: the end 0.01 is slightly smaller as f32, and this
/// f32 must be a valid value.
inline bool within_f32(const parameter& p, f32 v) noexcept {
    return v >= static_cast<f32>(p.low) && v <= static_cast<f32>(p.high);
}

/// Returns true if one element may have this value; a value that is not finite, or not an integer where an
/// integer is required, is not valid.
inline bool is_in_range(const parameter& p, f64 v) noexcept {
    switch (p.kind) {
        case parameter_kind::number:
            return fits_f32(v) && within_f32(p, static_cast<f32>(v));
        case parameter_kind::integer:
            return fits_i32(v) && v >= p.low && v <= p.high;
        case parameter_kind::flag:
            return v == 0 || v == 1;
        case parameter_kind::choice:
            return v >= 0 && is_whole(v) && v < static_cast<f64>(p.choices.size());
    }
    return false;
}

inline bool lies_within(const parameter& p, std::size_t bytes) noexcept {
    return p.count >= 1 && p.count <= most_elements && p.offset <= bytes &&
           bytes - p.offset >= std::size_t{p.count} * element_size;
}

/// Returns a value as text for a message, truncated if it is long.
inline std::string shown(const nlohmann::json& value) {
    std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > longest_shown) text.replace(longest_shown, std::string::npos, "...");
    return text;
}

}  // namespace carousel::ring::detail
