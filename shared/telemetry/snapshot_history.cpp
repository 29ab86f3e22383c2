#include "telemetry/snapshot_history.hpp"

#include <algorithm>

namespace carousel::telemetry {

void history::feed(const snapshot& s, const rates& r) {
    if (r.stages.size() != s.stages.size() || r.links.size() != s.links.size() || r.span_s <= 0) return;
    if (!samples_.empty() && samples_.back().stage_fps.size() != s.stages.size()) clear();
    if (!samples_.empty() && s.taken_ns < samples_.back().time_ns + interval_ns_) return;
    history_sample h;
    h.time_ns = s.taken_ns;
    bool sink_seen = false;
    for (std::size_t k = 0; k < s.stages.size(); ++k) {
        const stage_rates& now = r.stages[k];
        h.stage_fps.push_back(static_cast<f32>(now.frames_per_second));
        h.stage_p50_ms.push_back(static_cast<f32>(now.latency_p50_ms));
        h.stage_p99_ms.push_back(static_cast<f32>(now.latency_p99_ms));
        if (!s.stages[k].outputs.empty()) continue;
        h.end_to_end_p50_ms = std::max(h.end_to_end_p50_ms, static_cast<f32>(now.end_to_end_p50_ms));
        h.end_to_end_p99_ms = std::max(h.end_to_end_p99_ms, static_cast<f32>(now.end_to_end_p99_ms));
        const f32 fps = static_cast<f32>(now.frames_per_second);
        h.delivered_fps = sink_seen ? std::min(h.delivered_fps, fps) : fps;
        sink_seen = true;
    }
    for (const link_rates& l : r.links) {
        h.link_sent_fps.push_back(static_cast<f32>(l.sent_per_second));
        h.link_received_fps.push_back(static_cast<f32>(l.received_per_second));
        h.link_bytes_per_second.push_back(static_cast<f32>(l.bytes_per_second));
    }
    samples_.push_back(std::move(h));
    if (samples_.size() > capacity_) samples_.pop_front();
    while (!marks_.empty() && marks_.front().time_ns < samples_.front().time_ns) marks_.pop_front();
}

void history::mark(u64 time_ns, u32 stage) {
    marks_.push_back({time_ns, stage});
    if (marks_.size() > 256) marks_.pop_front();
}

void history::clear() {
    samples_.clear();
    marks_.clear();
}

}  // namespace carousel::telemetry
