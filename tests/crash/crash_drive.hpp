#pragma once
// A run of number stages that die by a plan, beside an undisturbed one.

#include <string>

#include "tests/crash/crash_plan.hpp"
#include "tests/crash/run_fixture.hpp"

namespace carousel::test {

/// Keys of [pipeline] for such runs: a rate, so that it takes its time, and a short deadline.
inline constexpr const char* crash_keys = "fps = 400\nframe_timeout_ms = 400\n";
/// The same for runs in which nobody has to be found by a deadline: a slow machine makes nobody late.
inline constexpr const char* patient_keys = "fps = 400\nframe_timeout_ms = 20000\n";

[[nodiscard]] std::string undisturbed_hash(u64 frames);
/// The report of a run that has ended: all `frames` there, whole, once, `hash` their hash, nothing left
/// behind.
void check_whole(run_fixture& run, u64 frames, const std::string& hash, std::size_t deaths);
/// Waits for more frames than the rings hold: every stage has lived behind the last death. False: they don't
/// come.
[[nodiscard]] bool makes_progress(run_fixture& run);
/// Ends a run that has no end of its own, as Ctrl-C does: whole, and its hash is that of an undisturbed run
/// of as many frames.
void end_intact(run_fixture& run, std::size_t deaths);
/// One run in which every stage dies at every point of its role; it lasts as long as that takes. `set_up`:
/// also on the way to readiness.
void drive(const std::string& how, bool set_up, u64 seed);

}  // namespace carousel::test
