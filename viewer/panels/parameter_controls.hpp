#pragma once
// The controls for parameter fields, selected by kind, range and role.

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "parameters/parameter_schema.hpp"

namespace carousel::viewer {

/// The text being typed into a row of numbers. The row is set as a whole when the user leaves it, never
/// partially typed.
struct typed_row {
    std::string field;  ///< "": none
    std::array<f64, 4> value{};
};

/// Returns false for hidden fields (which only files and `carousel set` use) and for the camera fields that
/// the orbit controls.
[[nodiscard]] bool is_shown(const ring::parameter& p) noexcept;
[[nodiscard]] const char* label_of(const ring::parameter& p) noexcept;

/// Draws the control, marked "scene." + its name. `key`: the shortcut, for the tooltip. Returns true if the
/// bytes changed.
bool draw_parameter(const ring::parameter& p, std::span<std::byte> values, const char* key, typed_row& typed);

/// A slider in degrees for a value in radians, and a plain slider. Marked as `name`. Return true if the value
/// changed.
bool degrees_slider(const char* label, const std::string& name, f32& radians, f32 low, f32 high);
bool number_slider(const char* label, const std::string& name, f32& value, f32 low, f32 high,
                   const char* format);

}  // namespace carousel::viewer
