#pragma once
// The GPU's part of what `carousel bench ipc` tells. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/ipc/result.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {

[[nodiscard]] nlohmann::ordered_json gpu_json(const gpu_result& r);
/// "": nothing of a GPU was asked for.
[[nodiscard]] std::string gpu_table(const gpu_result& r);
/// GB/s over size, and the hops beside each other; without curves or bars where there are no figures.
[[nodiscard]] plot::chart gpu_memory_plot(const gpu_result& r);
[[nodiscard]] plot::chart gpu_primitive_plot(const gpu_result& r);
[[nodiscard]] plot::bar_chart gpu_hop_plot(const gpu_result& r);

}  // namespace carousel::bench
