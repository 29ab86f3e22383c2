#pragma once
// Which CLOCK_MONOTONIC a process reads. A time namespace (clone(2), CLONE_NEWTIME) shifts it by an offset:
// time stamps that processes of two such namespaces leave in shared memory can't be compared. A heartbeat
// then is of the future, and its writer is never missed, or so old that the writer counts as stopped at once.

#include <optional>
#include <string>

#include "core/types.hpp"

namespace carousel {

struct clock_identity {
    std::string time_namespace;         ///< "time:[4026531834]"; empty: unknown (no /proc, Linux before 5.6)
    std::optional<i64> offset_ns = {};  ///< of its CLOCK_MONOTONIC to that of the initial time namespace
    /// CLOCK_REALTIME, which no namespace shifts, less CLOCK_MONOTONIC. A step of the system's time changes
    /// it: valid for a comparison with a value that was read at about the same time.
    std::optional<i64> realtime_ns = {};
    bool operator==(const clock_identity&) const = default;
};

/// Of this process, now. Any thread.
[[nodiscard]] clock_identity own_clock();
/// clock_identity::time_namespace alone.
[[nodiscard]] std::string time_namespace();
/// By how many nanoseconds the first clock is ahead of the second; 0 if they are the same clock, or if
/// nothing is known that proves the contrary.
[[nodiscard]] i64 clock_shift_ns(const clock_identity& a, const clock_identity& b) noexcept;
/// For an error message: "its CLOCK_MONOTONIC is 100000.0 s ahead of the run's (another time namespace) ...",
/// and what to do. `shift_ns` is not 0.
[[nodiscard]] std::string clock_shift_text(i64 shift_ns);

}  // namespace carousel
