#include "bench/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace carousel::bench {

f64 median_of(std::vector<f64> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

spread spread_of(const std::vector<f64>& values) {
    if (values.empty()) return {};
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {median_of(values), *least, *most};
}

std::vector<counted_range> added(const std::vector<counted_range>& before,
                                 const std::vector<counted_range>& after) {
    std::vector<counted_range> out;
    auto old = before.begin();
    for (const counted_range& now : after) {
        while (old != before.end() && old->from < now.from) ++old;
        const u64 had = old != before.end() && old->from == now.from ? old->count : 0;
        if (now.count > had) out.push_back({now.from, now.to, now.count - had});
    }
    return out;
}

f64 quantile_of(const std::vector<counted_range>& ranges, f64 p) {
    u64 total = 0;
    for (const counted_range& r : ranges) total += r.count;
    const f64 wanted = p * static_cast<f64>(total);
    f64 seen = 0;
    for (const counted_range& r : ranges) {
        const f64 here = static_cast<f64>(r.count);
        if (r.count > 0 && seen + here >= wanted)
            return r.from + (r.to - r.from) * std::clamp((wanted - seen) / here, 0.0, 1.0);
        seen += here;
    }
    return 0;
}

difference paired_difference(std::span<const f64> a, std::span<const f64> b) {
    const std::size_t n = std::min(a.size(), b.size());
    if (n < 2) return {};
    std::vector<f64> logs;
    for (std::size_t k = 0; k < n; ++k) {
        if (!(a[k] > 0) || !(b[k] > 0)) return {};
        logs.push_back(std::log(b[k] / a[k]));
    }
    const f64 count = static_cast<f64>(n);
    f64 mean = 0, squares = 0;
    for (const f64 l : logs) mean += l / count;
    for (const f64 l : logs) squares += (l - mean) * (l - mean);
    const f64 t = boost::math::quantile(boost::math::students_t(count - 1), 0.975);
    const f64 half = t * std::sqrt(squares / (count - 1) / count);
    const auto percent = [](f64 log_ratio) { return 100 * std::expm1(log_ratio); };
    return {true, percent(mean), percent(mean - half), percent(mean + half)};
}

bool difference::beyond_noise(f64 resolution_percent) const noexcept {
    return known && (low > 0 || high < 0) && std::abs(percent) > resolution_percent;
}

std::string verdict_on_rate(const difference& d, f64 resolution_percent) {
    if (!d.known) return "no verdict, because a confidence interval needs at least two rounds";
    if (!d.beyond_noise(resolution_percent))
        return fmt::format("no difference beyond noise ({:+.1f} %, 95 %: {:+.1f} to {:+.1f})", d.percent,
                           d.low, d.high);
    if (d.percent > 0)
        return fmt::format("B is {:.1f} % faster, 95 %: {:.1f} to {:.1f}", d.percent, d.low, d.high);
    return fmt::format("B is {:.1f} % slower, 95 %: {:.1f} to {:.1f}", -d.percent, -d.high, -d.low);
}

}  // namespace carousel::bench
