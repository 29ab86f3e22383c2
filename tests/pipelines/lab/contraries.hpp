#pragma once
// For each lesson figures that contradict it.

#include <map>
#include <span>
#include <string>

#include "core/types.hpp"

namespace carousel::test {

inline constexpr std::size_t fails = 99;

struct contrary {
    const char* lesson;
    const char* claim;
    std::map<std::string, f64> usual;   ///< with these the first row is selected
    std::map<std::string, f64> change;  ///< these contradict it
    std::size_t row = fails;            ///< that is then printed
};

[[nodiscard]] std::span<const contrary> all_contraries();

}  // namespace carousel::test
