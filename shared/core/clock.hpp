#pragma once
// Time. All processes of a machine read the same CLOCK_MONOTONIC, so timestamps in shared memory can be
// compared.

#include <ctime>

#include "core/types.hpp"

namespace carousel {

inline constexpr u64 ns_per_us = 1'000;
inline constexpr u64 ns_per_ms = 1'000'000;
inline constexpr u64 ns_per_s = 1'000'000'000;

/// Seconds in nanoseconds; 0 for a negative number.
[[nodiscard]] constexpr u64 nanoseconds_of(f64 seconds) noexcept {
    return seconds > 0 ? static_cast<u64>(seconds * static_cast<f64>(ns_per_s)) : 0;
}

/// Nanoseconds of CLOCK_MONOTONIC; the same clock in every process.
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

}  // namespace carousel
