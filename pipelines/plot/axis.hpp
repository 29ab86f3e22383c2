#pragma once
// A logarithmic axis of whole decades that contains `low` .. `high`, from position `begin` to `end`.

#include <algorithm>
#include <cmath>

#include "core/types.hpp"

namespace carousel::plot {

struct axis {
    int first, last;  ///< decades
    f64 begin, end;   ///< positions
    axis(f64 low, f64 high, f64 from, f64 to)
        : first(static_cast<int>(std::floor(std::log10(low)))),
          last(static_cast<int>(std::ceil(std::log10(high)))),
          begin(from),
          end(to) {
        if (last <= first) last = first + 1;
    }
    [[nodiscard]] f64 at(f64 value) const {
        return begin + (std::log10(value) - first) / (last - first) * (end - begin);
    }
};

/// The smallest and largest of the values that a logarithmic axis can show.
struct extent {
    f64 least = 0, most = 0;
    void add(f64 value) {
        if (!(value > 0) || !std::isfinite(value)) return;
        least = most > 0 ? std::min(least, value) : value;
        most = std::max(most, value);
    }
    [[nodiscard]] bool empty() const { return !(most > 0); }
};

}  // namespace carousel::plot
