#pragma once
// The plot of a bench: frame time over triangles, both axes logarithmic, one line per picture size, the
// peer's dashed. Self-contained SVG 1.1 (no external fonts or styles). A chart with only one cell is also
// valid: its line of one point is drawn as a dot.

#include <string>

#include "bench/raster.hpp"

namespace carousel::bench {

[[nodiscard]] std::string plot_of(const bench_result& r);

}  // namespace carousel::bench
