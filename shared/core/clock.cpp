#include "core/clock.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace carousel {
namespace {

namespace fs = std::filesystem;
constexpr i64 tolerance_ns = 10 * static_cast<i64>(ns_per_ms);  // tolerance between two readings of
                                                                // realtime_ns
constexpr u64 close_enough_ns = 100 * ns_per_us;
constexpr int most_readings = 20;

std::string namespace_of(const char* link) {
    std::error_code failed;
    return fs::read_symlink(link, failed).string();
}

// The file contains the offset for the namespace that this process's future children get. Between unshare()
// and fork(), that namespace differs from the namespace of this process.
std::optional<i64> offset_of(const std::string& own) {
    if (own.empty() || namespace_of("/proc/self/ns/time_for_children") != own) return std::nullopt;
    std::ifstream in("/proc/self/timens_offsets");
    std::string name;
    i64 seconds = 0, nanoseconds = 0;
    while (in >> name >> seconds >> nanoseconds)
        if (name == "monotonic") return seconds * static_cast<i64>(ns_per_s) + nanoseconds;
    return std::nullopt;
}

// Reads the monotonic clock before and after the real-time clock, several times. Uses the pair of monotonic
// readings that are closest together, so that a preemption between them does not distort the result.
i64 realtime_less_monotonic() noexcept {
    i64 best = 0;
    u64 closest = ~u64{0};
    for (int k = 0; k < most_readings && closest > close_enough_ns; ++k) {
        timespec real{};
        const u64 before = now_ns();
        clock_gettime(CLOCK_REALTIME, &real);
        const u64 took = now_ns() - before;
        if (took >= closest) continue;
        closest = took;
        best = real.tv_sec * static_cast<i64>(ns_per_s) + real.tv_nsec - static_cast<i64>(before + took / 2);
    }
    return best;
}

}  // namespace

std::string time_namespace() { return namespace_of("/proc/self/ns/time"); }

clock_identity own_clock() {
    clock_identity c{time_namespace()};
    c.offset_ns = offset_of(c.time_namespace);
    c.realtime_ns = realtime_less_monotonic();
    return c;
}

i64 clock_shift_ns(const clock_identity& a, const clock_identity& b) noexcept {
    if (!a.time_namespace.empty() && a.time_namespace == b.time_namespace) return 0;
    if (a.offset_ns && b.offset_ns) return *a.offset_ns - *b.offset_ns;
    if (!a.realtime_ns || !b.realtime_ns) return 0;
    const i64 shift = *b.realtime_ns - *a.realtime_ns;
    return std::abs(shift) > tolerance_ns ? shift : 0;
}

std::string clock_shift_text(i64 shift_ns) {
    return fmt::format(
        "its CLOCK_MONOTONIC is {:.3f} s {} the run's clock: it is in another time namespace, and time "
        "stamps in shared memory can't be compared; start it in the time namespace of the run's supervisor",
        std::abs(static_cast<f64>(shift_ns)) / 1e9, shift_ns > 0 ? "ahead of" : "behind");
}

}  // namespace carousel
