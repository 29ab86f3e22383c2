#pragma once
// The control that fits a field of the parameters: by its kind, its range and its role.

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "ring/parameter_schema.hpp"

namespace carousel::viewer {

/// What is being typed into a row of numbers: half a number is not set, the whole row is when it is left.
struct typed_row {
    std::string field;  ///< "": none
    std::array<f64, 4> value{};
};

/// False for what files and `carousel set` know alone, and for the parts of a camera that the orbit stands
/// for.
[[nodiscard]] bool is_shown(const ring::parameter& p) noexcept;
[[nodiscard]] const char* label_of(const ring::parameter& p) noexcept;

/// Draws it under the mark "scene." + its name; `key`: turns it, for its tooltip. True: its bytes were
/// changed.
bool draw_parameter(const ring::parameter& p, std::span<std::byte> values, const char* key, typed_row& typed);

/// A slider for radians, in degrees; and the plain one. Marked under `name`.
bool degrees_slider(const char* label, const std::string& name, f32& radians, f32 low, f32 high);
bool number_slider(const char* label, const std::string& name, f32& value, f32 low, f32 high,
                   const char* format);

}  // namespace carousel::viewer
