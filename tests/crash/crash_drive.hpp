#pragma once
// A run of number stages that die by a plan, beside an undisturbed one.

#include <string>

#include "tests/crash/crash_plan.hpp"
#include "tests/crash/run_fixture.hpp"

namespace carousel::test {

/// Keys of [pipeline] for such runs: a rate, so that the run outlasts its deaths, and a short deadline.
inline constexpr const char* crash_keys = "fps = 400\nframe_timeout_ms = 400\n";

[[nodiscard]] std::string undisturbed_hash(u64 frames);
/// The report of a run that has ended: all `frames` there, whole, once, `hash` their hash, nothing left
/// behind.
void check_whole(run_fixture& run, u64 frames, const std::string& hash, std::size_t deaths);
/// One run in which every stage dies at every point of its role. `set_up`: also on the way to readiness.
void drive(const std::string& how, bool set_up, u64 frames, u64 seed);

}  // namespace carousel::test
