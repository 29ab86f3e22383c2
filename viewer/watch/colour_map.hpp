#pragma once
// From a value to a colour. Two maps: grey, and viridis, in which equal steps of the value look like equal
// steps, also in print without colours and to most who see colours otherwise.

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
/// For what is no number: NaN and the infinities. In neither map.
inline constexpr colour no_number_colour{255, 0, 255};

/// `at` from 0 (the lowest value) to 1.
[[nodiscard]] colour colour_at(colour_map map, f64 at) noexcept;
/// The map in 256 steps; the first is that of 0, the last that of 1.
[[nodiscard]] const std::array<colour, 256>& table_of(colour_map map) noexcept;

}  // namespace carousel::viewer
