#pragma once
// The last frames as bars a stage: when it claimed a frame, had submitted it, and saw it complete. Collected
// from the slots' headers and from the jobs in work over successive snapshots; a frame that came and went
// between two of them is missing, which a drawing of the last frames can bear. One thread an object.

#include <vector>

#include "telemetry/snapshot.hpp"

namespace carousel::telemetry {

struct frame_bar {
    u64 ring_sequence = 0;
    u64 born_ns = 0, claimed_ns = 0, submitted_ns = 0;  ///< 0: not known
    u64 committed_ns = 0;  ///< 0: in work. Of a sink: when it was seen to be gone
    u64 done_ns = 0;       ///< when a snapshot first saw it done by all blocking readers; 0: not seen
    bool is_tombstone = false;
};

class timeline {
public:
    explicit timeline(std::size_t frames = 512) : capacity_(frames) {}
    void feed(const snapshot& s);
    void clear() { bars_.clear(); }
    /// As snapshot::stages; frames in order of their sequence.
    [[nodiscard]] const std::vector<std::vector<frame_bar>>& bars() const noexcept { return bars_; }

private:
    [[nodiscard]] frame_bar& bar_of(u32 stage, u64 ring_sequence);
    void feed_slots(const snapshot& s, u32 stage);
    void feed_jobs(const snapshot& s);

    std::size_t capacity_;
    std::string run_;
    std::vector<std::vector<frame_bar>> bars_;
};

}  // namespace carousel::telemetry
