#pragma once
// What an end of a link reports of itself, for the run's report: a file in the run's runtime directory,
// figures-STAGE, written whole by the link's thread every second and when it ends. Whoever reads it finds an
// old text or a new one, never a part.

#include <optional>
#include <string>

#include "hosts/clock_filter.hpp"

namespace carousel::hosts {

class link_figures {
public:
    link_figures(std::string path, std::string run) : path_(std::move(path)), run_(std::move(run)) {}

    /// Behind whatever has changed; writes once a second, or `force`. What can't be written is left.
    void update(bool up, const std::optional<clock_relation>& clock, u64 now, bool force = false);
    /// Of a receiving end: the sender keeps its frames until the sinks here have them.
    void sent_durably(bool how) noexcept { durable_ = how; }
    void crossed(u64 bytes, u64 packed_bytes) noexcept {
        ++frames_, bytes_ += bytes, packed_ += packed_bytes;
    }

private:
    std::string path_, run_;
    u64 frames_ = 0, bytes_ = 0, packed_ = 0, written_ns_ = 0, connections_ = 0;
    bool was_up_ = false, durable_ = false;
    std::optional<clock_relation> clock_;  ///< the last that was known
};

}  // namespace carousel::hosts
