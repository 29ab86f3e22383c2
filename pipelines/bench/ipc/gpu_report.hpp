#pragma once
// The GPU part of the report of `carousel bench ipc`. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/ipc/result.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {

[[nodiscard]] nlohmann::ordered_json gpu_json(const gpu_result& r);
/// Returns "" if no GPU table was requested.
[[nodiscard]] std::string gpu_table(const gpu_result& r);
/// Plots GB/s over size, and the hops next to each other; without curves or bars if there are no figures.
[[nodiscard]] plot::chart gpu_memory_plot(const gpu_result& r);
[[nodiscard]] plot::chart gpu_primitive_plot(const gpu_result& r);
[[nodiscard]] plot::bar_chart gpu_hop_plot(const gpu_result& r);

}  // namespace carousel::bench
