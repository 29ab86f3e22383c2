#pragma once
// Maps a value to a colour. There are two maps: grey, and viridis, in which equal steps of the value appear
// as equal steps, also in greyscale print and for most people with colour vision deficiency.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/types.hpp"

namespace carousel::viewer {

enum class colour_map : u8 { grey, viridis };
[[nodiscard]] const char* name_of(colour_map map) noexcept;
[[nodiscard]] std::optional<colour_map> colour_map_named(std::string_view name) noexcept;

struct colour {
    u8 r = 0, g = 0, b = 0;
    bool operator==(const colour&) const = default;
};
/// The colour of NaN and the infinities. Neither map contains it.
inline constexpr colour no_number_colour{255, 0, 255};

/// The colour of `at`, from 0 (the lowest value) to 1; values outside are clamped.
[[nodiscard]] colour colour_at(colour_map map, f64 at) noexcept;
/// The map in 256 steps: the first is the colour of 0, the last the colour of 1.
[[nodiscard]] const std::array<colour, 256>& table_of(colour_map map) noexcept;

}  // namespace carousel::viewer
