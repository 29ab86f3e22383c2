#pragma once
// The GPU's part of what `carousel bench ipc` tells. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/ipc/result.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {

[[nodiscard]] nlohmann::ordered_json gpu_json(const gpu_result& r);
/// "": nothing of a GPU was asked for.
[[nodiscard]] std::string gpu_table(const gpu_result& r);
/// None without figures.
[[nodiscard]] std::vector<plot::chart> gpu_plots(const gpu_result& r);

}  // namespace carousel::bench
