#pragma once
// The shared parts of guard_cost: its options, the thread's clock, and lines of its table.

#include <vector>

#include "core/types.hpp"

namespace carousel::guard_cost {

struct options {
    u32 pairs = 20, frames = 60, width = 1920, height = 1080, triangles = 100'000;
    f64 cpu_us = 0;  ///< of a run's frame in all stages; 0: not set
    int gpu = 0;
    u32 seed = 16;       ///< of the order of measurements, and of the placement of each one's memory
    bool graphs = true;  ///< each stage's work as a graph, as a run has it
};

[[nodiscard]] u64 thread_cpu_ns();
[[nodiscard]] f64 median(std::vector<f64> v);

/// A line: the median of with[k] / without[k], and the interval that holds the true median with 95 %.
void print_ratio(const char* guard, const char* what, const std::vector<f64>& without,
                 const std::vector<f64>& with);
/// The same of the difference, in percent of options::cpu_us; empty if that is not set.
void print_share(const char* guard, const options& o, const std::vector<f64>& without,
                 const std::vector<f64>& with);

/// The rows of the closed control block. Forks: before the process's first call of a GPU function.
void ring_rows(const options& o);

}  // namespace carousel::guard_cost
