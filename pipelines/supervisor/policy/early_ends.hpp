#pragma once
// Decides whether a program that ends is started again: a program that serves for at least a minute always
// is; one that ends within a minute of its start, `most` times in a row, is not.

#include "core/clock.hpp"

namespace carousel::supervisor {

/// Counts the ends in a row that came within a minute of the start.
class early_ends {
public:
    static constexpr u64 service_ns = 60 * ns_per_s;
    static constexpr u32 most = 4;

    /// To be called when the program starts. Times are CLOCK_MONOTONIC in ns.
    void note_start(u64 now) noexcept { started_ns_ = now; }
    /// To be called when the program ends. Returns true if it is to be started again.
    [[nodiscard]] bool note_end(u64 now) noexcept {
        in_row_ = now - started_ns_ < service_ns ? in_row_ + 1 : 0;
        return in_row_ < most;
    }

private:
    u64 started_ns_ = 0;
    u32 in_row_ = 0;
};

}  // namespace carousel::supervisor
