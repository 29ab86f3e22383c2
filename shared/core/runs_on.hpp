#pragma once
// The devices on which a stage can run. The stage declares them; `carousel validate` refuses a pipeline that
// places a stage on another device.

#include <array>
#include <string_view>

#include "core/types.hpp"

namespace carousel {

enum class runs_on : u8 { any, cpu, cuda };

inline constexpr std::array<std::string_view, 3> runs_on_names{"any", "cpu", "cuda"};

[[nodiscard]] constexpr std::string_view name_of(runs_on devices) noexcept {
    return runs_on_names[static_cast<std::size_t>(devices)];
}

/// Returns the device with the name `word`, or `otherwise` if no device has this name.
[[nodiscard]] constexpr runs_on runs_on_named(std::string_view word, runs_on otherwise) noexcept {
    for (std::size_t k = 0; k < runs_on_names.size(); ++k)
        if (runs_on_names[k] == word) return static_cast<runs_on>(k);
    return otherwise;
}

}  // namespace carousel
