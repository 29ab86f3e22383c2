#pragma once
// Statistics of a few repeated measurements: median and range, quantiles of latency histograms, and the
// difference of two builds that were measured alternately.

#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::bench {

/// Returns the mean of the two middle values for an even number of values, 0 for none.
[[nodiscard]] f64 median_of(std::vector<f64> values);

struct spread {
    f64 median = 0, least = 0, most = 0;
};
[[nodiscard]] spread spread_of(const std::vector<f64>& values);

/// A histogram bin: `count` samples with from <= x < to.
struct counted_range {
    f64 from = 0, to = 0;
    u64 count = 0;
    bool operator==(const counted_range&) const = default;
};
/// Returns the samples added between `before` and `after`; the bins of both are in ascending order. A bin
/// that is missing in `after` counts as unchanged.
[[nodiscard]] std::vector<counted_range> added(const std::vector<counted_range>& before,
                                               const std::vector<counted_range>& after);
/// Returns the p-quantile (p in 0..1), interpolated within its bin; 0 without samples.
[[nodiscard]] f64 quantile_of(const std::vector<counted_range>& ranges, f64 p);

/// By how many percent B exceeds A, with the 95 % confidence interval.
struct difference {
    bool known = false;  ///< false: there are fewer than two pairs, or a figure is not above 0
    f64 percent = 0, low = 0, high = 0;
    [[nodiscard]] bool beyond_noise(f64 resolution_percent) const noexcept;
};

/// Compares paired samples: a[k] and b[k] are measured one after the other, so that other load on the machine
/// affects both. Each pair gives one logarithm of b/a; their mean and Student's t with n - 1 degrees of
/// freedom give the interval.
[[nodiscard]] difference paired_difference(std::span<const f64> a, std::span<const f64> b);

/// Returns "no difference beyond noise (+0.3 %, 95 %: -1.2 to +1.9)", "B is 4.1 % slower, 95 %: 1.2 to 7.0".
/// `resolution_percent`: a difference of at most this size always counts as noise, even if the interval does
/// not contain 0.
[[nodiscard]] std::string verdict_on_rate(const difference& d, f64 resolution_percent);

}  // namespace carousel::bench
