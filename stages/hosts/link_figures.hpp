#pragma once
// Figures of one end of a link for the run's report: a file in the run's runtime directory, figures-STAGE,
// written atomically by the link's thread every second and at its end. A reader finds the old or the new
// text, never a part.

#include <optional>
#include <string>

#include "hosts/clock_filter.hpp"

namespace carousel::hosts {

class link_figures {
public:
    link_figures(std::string path, std::string run) : path_(std::move(path)), run_(std::move(run)) {}

    /// To be called after each change; writes once per second, or immediately if `force` is set. A failed
    /// write is ignored.
    void update(bool up, const std::optional<clock_relation>& clock, u64 now, bool force = false);
    /// For a receiving end: the sender keeps its frames until the sinks here have them.
    void sent_durably(bool how) noexcept { durable_ = how; }
    void crossed(u64 bytes, u64 packed_bytes) noexcept {
        ++frames_, bytes_ += bytes, packed_ += packed_bytes;
    }

private:
    std::string path_, run_;
    u64 frames_ = 0, bytes_ = 0, packed_ = 0, written_ns_ = 0, connections_ = 0;
    bool was_up_ = false, durable_ = false;
    std::optional<clock_relation> clock_;  ///< the last known one
};

}  // namespace carousel::hosts
