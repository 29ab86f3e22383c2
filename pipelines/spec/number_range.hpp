#pragma once
// The valid values of a numeric key of a pipeline file: the range that is checked, documented and printed.
// Bounds are exact: each of them is below 2^53.

#include <string>

#include "core/types.hpp"

namespace carousel::supervisor {

struct number_range {
    f64 low = 0, high = 0;   ///< both included
    const char* unit = "";   ///< "ms", "frames/s"
    const char* zero = "";   ///< not empty: 0 is also valid, with this meaning
    const char* words = "";  ///< not empty: these words are also valid, as they are written
    bool whole = true;       ///< integers only
    [[nodiscard]] bool contains(f64 value) const noexcept;  ///< false for NaN
    /// "a whole number from 10 to 3600000, or 0 for none"
    [[nodiscard]] std::string text() const;
};

}  // namespace carousel::supervisor
