#pragma once
// What a handful of repeated measurements says: middle and spread, quantiles of counted latencies, and how
// two builds that were measured in turns differ.

#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::bench {

/// Of an even number the mean of the two in the middle; 0 of none.
[[nodiscard]] f64 median_of(std::vector<f64> values);

struct spread {
    f64 median = 0, least = 0, most = 0;
};
[[nodiscard]] spread spread_of(const std::vector<f64>& values);

/// So many samples lie in from <= x < to.
struct counted_range {
    f64 from = 0, to = 0;
    u64 count = 0;
    bool operator==(const counted_range&) const = default;
};
/// What was added to `before` until `after`; both ascending. A range that `after` doesn't have counts as
/// unchanged.
[[nodiscard]] std::vector<counted_range> added(const std::vector<counted_range>& before,
                                               const std::vector<counted_range>& after);
/// The p-quantile (0..1), interpolated within its range; 0 without samples.
[[nodiscard]] f64 quantile_of(const std::vector<counted_range>& ranges, f64 p);

/// How much greater B is than A, in percent, with the interval that holds the true value with 95 %.
struct difference {
    bool known = false;  ///< false: fewer than two pairs, or a figure that is not above 0
    f64 percent = 0, low = 0, high = 0;
    [[nodiscard]] bool beyond_noise(f64 resolution_percent) const noexcept;
};

/// a[k] and b[k] are neighbours in time, so that what else happens on the machine hits both: each pair gives
/// one logarithm of b/a; their mean and Student's t with n - 1 degrees of freedom give the interval.
[[nodiscard]] difference paired_difference(std::span<const f64> a, std::span<const f64> b);

/// "no difference beyond noise (+0.3 %, 95 %: -1.2 to +1.9)", "B is 4.1 % slower, 95 %: 1.2 to 7.0".
/// `resolution_percent`: what can't be told apart whatever the interval says.
[[nodiscard]] std::string verdict_on_rate(const difference& d, f64 resolution_percent);

}  // namespace carousel::bench
