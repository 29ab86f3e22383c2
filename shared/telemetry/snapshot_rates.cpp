#include "telemetry/snapshot_rates.hpp"

#include <algorithm>

#include "telemetry/grown.hpp"

namespace carousel::telemetry {
namespace {

void rate_stage(const stage_view& now, const stage_view& before, u64 span_ns, u32 seats, stage_rates& out) {
    const f64 span_s = static_cast<f64>(span_ns) / 1e9;
    out.frames_per_second = static_cast<f64>(grown(now.frames, before.frames)) / span_s;
    out.helped_per_second = static_cast<f64>(grown(now.helped, before.helped)) / span_s;
    out.time = shares_of(now.time, before.time, span_ns, seats);
    out.latency = difference(now.latency, before.latency);
    out.end_to_end = difference(now.end_to_end, before.end_to_end);
    out.from_capture = difference(now.from_capture, before.from_capture);
    const bucket_counts handover = difference(now.handover, before.handover);
    out.latency_p50_ms = percentile_ms(out.latency, 0.5);
    out.latency_p99_ms = percentile_ms(out.latency, 0.99);
    out.handover_p50_ms = percentile_ms(handover, 0.5);
    out.handover_p99_ms = percentile_ms(handover, 0.99);
    out.end_to_end_p50_ms = percentile_ms(out.end_to_end, 0.5);
    out.end_to_end_p99_ms = percentile_ms(out.end_to_end, 0.99);
    out.from_capture_p50_ms = percentile_ms(out.from_capture, 0.5);
    out.from_capture_p99_ms = percentile_ms(out.from_capture, 0.99);
}

void rate_link(const link_view& now, const link_view& before, f64 span_s, link_rates& out) {
    out.sent_per_second = static_cast<f64>(grown(now.committed, before.committed)) / span_s;
    out.received_per_second = static_cast<f64>(grown(now.tail, before.tail)) / span_s;
    out.bytes_per_second = out.sent_per_second * static_cast<f64>(now.slot_bytes);
    out.group_skips_per_second.assign(now.groups.size(), 0.0);
    for (std::size_t g = 0; g < now.groups.size(); ++g)
        for (const group_view& old : before.groups)
            if (old.index == now.groups[g].index)
                out.group_skips_per_second[g] =
                    static_cast<f64>(grown(now.groups[g].skipped, old.skipped)) / span_s;
}

}  // namespace

bucket_counts difference(const bucket_counts& now, const bucket_counts& before) noexcept {
    bucket_counts out{};
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = grown(now[k], before[k]);
    return out;
}

const rates& rate_tracker::feed(const snapshot& s) {
    const bool another =
        !past_.empty() &&
        (past_.back().run_id != s.run_id || past_.back().created_ns != s.created_ns ||
         past_.back().stages.size() != s.stages.size() || past_.back().links.size() != s.links.size() ||
         past_.back().seats.size() != s.seats.size() || s.taken_ns < past_.back().taken_ns);
    if (another) past_.clear();
    if (past_.empty()) {
        past_.push_back(s);
        rates_ = {};
        rates_.stages.resize(s.stages.size());
        rates_.links.resize(s.links.size());
        for (std::size_t k = 0; k < s.links.size(); ++k)
            rates_.links[k].group_skips_per_second.assign(s.links[k].groups.size(), 0.0);
        rates_.cpu.assign(s.seats.size(), 0.0);
        return rates_;
    }
    while (past_.size() > 1 && past_[1].taken_ns + span_ns_ <= s.taken_ns) past_.pop_front();
    const snapshot& before = past_.front();
    const u64 span_ns = s.taken_ns - before.taken_ns;
    if (span_ns == 0) return rates_;
    rates_.span_s = static_cast<f64>(span_ns) / 1e9;
    for (std::size_t k = 0; k < s.stages.size(); ++k)
        rate_stage(s.stages[k], before.stages[k], span_ns, s.stages[k].seats, rates_.stages[k]);
    for (std::size_t k = 0; k < s.links.size(); ++k)
        rate_link(s.links[k], before.links[k], rates_.span_s, rates_.links[k]);
    for (std::size_t k = 0; k < s.seats.size(); ++k) {
        const bool same = s.seats[k].epoch == before.seats[k].epoch;
        rates_.cpu[k] = static_cast<f64>(grown(s.seats[k].cpu_ns, same ? before.seats[k].cpu_ns : 0)) /
                        static_cast<f64>(span_ns);
    }
    if (s.taken_ns >= past_.back().taken_ns + span_ns_ / 4) past_.push_back(s);
    return rates_;
}

whole_latency whole_latency_of(const rates& r) noexcept {
    whole_latency out;
    for (const stage_rates& s : r.stages) {
        out.end_to_end_p50_ms = std::max(out.end_to_end_p50_ms, s.end_to_end_p50_ms);
        out.end_to_end_p99_ms = std::max(out.end_to_end_p99_ms, s.end_to_end_p99_ms);
        out.from_capture_p50_ms = std::max(out.from_capture_p50_ms, s.from_capture_p50_ms);
        out.from_capture_p99_ms = std::max(out.from_capture_p99_ms, s.from_capture_p99_ms);
    }
    return out;
}

}  // namespace carousel::telemetry
