#include "spec/number_range.hpp"

#include <fmt/format.h>

namespace carousel::supervisor {

bool number_range::contains(f64 value) const noexcept {
    return (value >= low && value <= high) || (*zero != 0 && value == 0);
}

std::string number_range::text() const {
    const std::string of_zero = *zero != 0 ? fmt::format(", or 0 for {}", zero) : "";
    const std::string of_words = *words != 0 ? fmt::format(", or {}", words) : "";
    return whole ? fmt::format("a whole number from {:.0f} to {:.0f}{}{}", low, high, of_zero, of_words)
                 : fmt::format("a number from {} to {}{}{}", low, high, of_zero, of_words);
}

}  // namespace carousel::supervisor
