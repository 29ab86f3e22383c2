#include "viewer/stats.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <numeric>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/output_file.hpp"

namespace carousel::viewer {
namespace {

constexpr std::size_t most_samples = 1U << 20U;  // hours at 60 frames/s

u64 cpu_ns() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    const auto ns = [](const timeval& t) {
        return static_cast<u64>(t.tv_sec) * ns_per_s + static_cast<u64>(t.tv_usec) * 1000;
    };
    return ns(u.ru_utime) + ns(u.ru_stime);
}

nlohmann::json summary(std::vector<f32> v) {
    if (v.empty()) return nullptr;
    std::sort(v.begin(), v.end());
    const auto at = [&](f64 p) { return v[static_cast<std::size_t>(p * static_cast<f64>(v.size() - 1))]; };
    return {{"mean", std::accumulate(v.begin(), v.end(), 0.0) / static_cast<f64>(v.size())},
            {"p50", at(0.5)},
            {"p99", at(0.99)}};
}

}  // namespace

stats::stats() : began_ns_(now_ns()), began_cpu_ns_(cpu_ns()) {}

void stats::feed(const model& m) {
    ++drawn_;
    if (!m.picture.path.empty()) way_ = m.picture.path;
    if (m.picture.shown_frames == shown_before_) return;
    shown_ += m.picture.shown_frames - shown_before_;
    shown_before_ = m.picture.shown_frames;
    if (take_ms_.size() >= most_samples) return;
    take_ms_.push_back(static_cast<f32>(m.picture.copy_ms));
    show_ms_.push_back(static_cast<f32>(m.picture.show_ms));
}

void stats::write(const std::string& path, const model& m, const window& w) const {
    const f64 seconds = std::max(1e-9, static_cast<f64>(now_ns() - began_ns_) / 1e9);
    const nlohmann::json out{
        {"run", m.run.run_id},
        {"window", w.description()},
        {"way", way_},
        {"problem", m.picture.problem},
        {"picture", {m.picture.width, m.picture.height}},
        {"seconds", seconds},
        {"drawn_per_second", static_cast<f64>(drawn_) / seconds},
        {"painted_share", w.painted_share()},
        {"shown", shown_},
        {"shown_per_second", static_cast<f64>(shown_) / seconds},
        {"take_ms", summary(take_ms_)},
        {"show_ms", summary(show_ms_)},
        {"discarded",
         {{"revoked", m.picture.revoked}, {"torn", m.picture.torn}, {"tombstone", m.picture.tombstones}}},
        {"cpu_share", static_cast<f64>(cpu_ns() - began_cpu_ns_) / 1e9 / seconds}};
    output_file(path).write(out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace carousel::viewer
