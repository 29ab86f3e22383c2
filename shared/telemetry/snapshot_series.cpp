#include "telemetry/snapshot_series.hpp"

#include <algorithm>

#include "telemetry/busy_time.hpp"

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
        if (!s.stages[k].is_sink()) continue;
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

frame_bar& timeline::bar_of(u32 stage, u64 ring_sequence) {
    std::vector<frame_bar>& bars = bars_[stage];
    auto at = std::lower_bound(bars.begin(), bars.end(), ring_sequence,
                               [](const frame_bar& b, u64 n) { return b.ring_sequence < n; });
    if (at == bars.end() || at->ring_sequence != ring_sequence) {
        at = bars.insert(at, frame_bar());
        at->ring_sequence = ring_sequence;
    }
    return *at;
}

void timeline::feed_slots(const snapshot& s, u32 stage) {
    u64 through = ~u64{0};  // the lowest tail of all rings of the stage
    for (const u32 link : s.stages[stage].outputs) {
        const link_view& l = s.links[link];
        through = std::min(through, l.tail);
        for (const slot_view& slot : l.slots) {
            if (slot.claimed_ns == 0 || slot.committed_ns < slot.claimed_ns) continue;
            frame_bar& b = bar_of(stage, slot.ring_sequence);
            b.born_ns = slot.born_ns;
            b.claimed_ns = slot.claimed_ns;
            b.submitted_ns = slot.submitted_ns;
            b.committed_ns = slot.committed_ns;
            b.is_tombstone = slot.tombstone_stage != shm::none;
        }
    }
    for (frame_bar& b : bars_[stage])
        if (b.done_ns == 0 && b.committed_ns != 0 && b.ring_sequence < through) b.done_ns = s.taken_ns;
}

void timeline::feed_jobs(const snapshot& s) {
    for (const job_view& j : s.jobs) {
        if (j.stage >= bars_.size() || j.process_since_ns == 0) continue;
        frame_bar& b = bar_of(j.stage, j.ring_sequence);
        // the bar already has data from the slot's header, which is newer
        if (b.committed_ns >= j.process_since_ns) continue;
        b.claimed_ns = b.claimed_ns == 0 ? j.process_since_ns : std::min(b.claimed_ns, j.process_since_ns);
        b.submitted_ns = j.submitted_since_ns;
        b.committed_ns = 0;
    }
    for (u32 k = 0; k < bars_.size(); ++k)
        for (frame_bar& b : bars_[k]) {
            if (b.committed_ns != 0) continue;
            const bool in_work = std::any_of(s.jobs.begin(), s.jobs.end(), [&](const job_view& j) {
                return j.stage == k && j.ring_sequence == b.ring_sequence;
            });
            if (!in_work) b.committed_ns = s.taken_ns;
        }
}

void timeline::feed(const snapshot& s) {
    if (run_ != s.run_id || bars_.size() != s.stages.size()) {
        run_ = s.run_id;
        bars_.assign(s.stages.size(), {});
    }
    for (u32 k = 0; k < s.stages.size(); ++k)
        if (!s.stages[k].outputs.empty()) feed_slots(s, k);
    feed_jobs(s);
    for (std::vector<frame_bar>& bars : bars_)
        if (bars.size() > capacity_ + 64)
            bars.erase(bars.begin(), bars.end() - static_cast<std::ptrdiff_t>(capacity_));
}

}  // namespace carousel::telemetry
