#pragma once
// Time. All processes of a machine read the same CLOCK_MONOTONIC, so timestamps in shared memory can be
// compared.

#include <ctime>
#include <optional>
#include <string>

#include "core/types.hpp"

namespace carousel {

inline constexpr u64 ns_per_us = 1'000;
inline constexpr u64 ns_per_ms = 1'000'000;
inline constexpr u64 ns_per_s = 1'000'000'000;

/// Converts seconds to nanoseconds; returns 0 for a negative number.
[[nodiscard]] constexpr u64 nanoseconds_of(f64 seconds) noexcept {
    return seconds > 0 ? static_cast<u64>(seconds * static_cast<f64>(ns_per_s)) : 0;
}

/// Time of CLOCK_MONOTONIC in nanoseconds; every process reads the same clock.
[[nodiscard]] inline u64 now_ns() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<u64>(t.tv_sec) * ns_per_s + static_cast<u64>(t.tv_nsec);
}

/// CPU time in nanoseconds that all threads of this process have used.
[[nodiscard]] inline u64 process_cpu_ns() noexcept {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<u64>(t.tv_sec) * ns_per_s + static_cast<u64>(t.tv_nsec);
}

// Identifies the CLOCK_MONOTONIC that a process reads. A time namespace (clone(2), CLONE_NEWTIME) shifts this
// clock by an offset. If processes of two time namespaces write timestamps to shared memory, the timestamps
// can't be compared. A heartbeat may be in the future, and then the death of its writer is never detected. Or
// it may be so far in the past that its writer is immediately considered stopped.

struct clock_identity {
    std::string time_namespace;  ///< "time:[4026531834]"; empty: unknown (no /proc, Linux before 5.6)
    /// CLOCK_MONOTONIC in this namespace minus CLOCK_MONOTONIC in the initial namespace
    std::optional<i64> offset_ns = {};
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC. No namespace shifts CLOCK_REALTIME, but a step of the system
    /// time changes the difference, so compare only values that were read at about the same time.
    std::optional<i64> realtime_ns = {};
    bool operator==(const clock_identity&) const = default;
};

/// The identity of this process's clock, read now. Any thread.
[[nodiscard]] clock_identity own_clock();
/// Only clock_identity::time_namespace.
[[nodiscard]] std::string time_namespace();
/// Nanoseconds by which clock `a` is ahead of clock `b`; 0 if they are the same clock, or if a difference
/// can't be proven.
[[nodiscard]] i64 clock_shift_ns(const clock_identity& a, const clock_identity& b) noexcept;
/// Returns a text for an error message: "its CLOCK_MONOTONIC is 100000.000 s ahead of the run's clock: it is
/// in another time namespace ...", and the remedy. `shift_ns` is not 0.
[[nodiscard]] std::string clock_shift_text(i64 shift_ns);

}  // namespace carousel
