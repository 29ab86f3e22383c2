#include "supervisor/policy/uncounted_time.hpp"

#include <algorithm>

namespace carousel::supervisor {

void uncounted_time::add(u64 from, u64 until, u64 ns) {
    if (until <= from || ns == 0) return;
    const u64 sum = points_.empty() ? 0 : points_.back().sum;
    if (points_.empty() || points_.back().at < from) points_.push_back({from, sum});
    points_.push_back({until, sum + std::min(ns, until - from)});
    if (points_.size() <= most_points) return;
    std::size_t kept = 0;  // removes every second point of the older half
    for (std::size_t k = 0; k < points_.size(); ++k)
        if (k >= points_.size() / 2 || k % 2 == 0) points_[kept++] = points_[k];
    points_.resize(kept);
}

u64 uncounted_time::sum_at(u64 time) const noexcept {
    const auto after = std::upper_bound(points_.begin(), points_.end(), time,
                                        [](u64 t, const point& p) { return t < p.at; });
    if (after == points_.begin()) return 0;
    const point& a = *(after - 1);
    if (after == points_.end()) return a.sum;
    const f64 part = static_cast<f64>(time - a.at) / static_cast<f64>(after->at - a.at);
    return a.sum + static_cast<u64>(part * static_cast<f64>(after->sum - a.sum));
}

u64 uncounted_time::between(u64 from, u64 until) const noexcept {
    return until <= from ? 0 : sum_at(until) - sum_at(from);
}

}  // namespace carousel::supervisor
