#include "telemetry/snapshot_timeline.hpp"

#include <algorithm>

namespace carousel::telemetry {

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
        if (b.committed_ns >= j.process_since_ns) continue;  // the slot's header has more data
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
