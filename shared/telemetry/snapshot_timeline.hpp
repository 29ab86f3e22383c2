#pragma once
// The last frames as bars per stage: the times when a stage claimed a frame, had submitted it, and found it
// complete. Collected from the slots' headers and from the jobs in progress over successive snapshots; a
// frame that appeared and disappeared between two snapshots is missing, which is acceptable for a drawing of
// the last frames. One thread per object.

#include <vector>

#include "telemetry/snapshot.hpp"

namespace carousel::telemetry {

struct frame_bar {
    u64 ring_sequence = 0;
    u64 born_ns = 0, claimed_ns = 0, submitted_ns = 0;  ///< 0: unknown
    u64 committed_ns = 0;  ///< 0: in progress. for a sink: the time of the first snapshot in which the frame
                           ///< was no longer in progress
    u64 done_ns = 0;       ///< the time of the first snapshot in which all blocking readers were done with
                           ///< the frame; 0: not observed
    bool is_tombstone = false;
};

class timeline {
public:
    explicit timeline(std::size_t frames = 512) : capacity_(frames) {}
    void feed(const snapshot& s);
    void clear() { bars_.clear(); }
    /// Indexed like snapshot::stages; frames are in order of their sequence.
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
