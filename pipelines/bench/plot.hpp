#pragma once
// The plot of a bench: frame time over triangles, both axes logarithmic, a line a picture size, the peer's
// dashed. SVG 1.1 as text, by itself (no fonts or styles from elsewhere). Also right for one cell: a line of
// one point is a dot.

#include <string>

#include "bench/raster.hpp"

namespace carousel::bench {

[[nodiscard]] std::string plot_of(const bench_result& r);

}  // namespace carousel::bench
