#pragma once
// A run of number stages that die by a plan, compared with a run without faults.

#include <string>

#include "tests/crash/crash_plan.hpp"
#include "tests/crash/run_fixture.hpp"

namespace carousel::test {

/// Keys of [pipeline] for such runs: a rate, so that the run lasts, and a short deadline.
inline constexpr const char* crash_keys = "fps = 400\nframe_timeout_ms = 400\n";
/// The same for runs in which no death must be detected by a deadline: on a slow machine no process is late.
inline constexpr const char* patient_keys = "fps = 400\nframe_timeout_ms = 20000\n";

// `keys`: of all stages.
[[nodiscard]] std::string undisturbed_hash(u64 frames, const std::string& keys = "");
/// Checks the report of a run that has ended: all `frames` were delivered, intact, once, with the hash
/// `hash`, and nothing is left over.
void check_whole(run_fixture& run, u64 frames, const std::string& hash, std::size_t deaths);
/// Waits for more frames than the rings hold: every stage has worked after the last death. Returns false if
/// they don't come.
[[nodiscard]] bool makes_progress(run_fixture& run);
/// Ends a run without a frame limit, as Ctrl-C does; checks that it is intact, with the hash of a run without
/// faults of as many frames.
void end_intact(run_fixture& run, std::size_t deaths, const std::string& keys = "");
/// One run in which every stage dies at every point of its role; it lasts as long as that takes. `set_up`:
/// also before it is ready.
void drive(const std::string& how, bool set_up, u64 seed, const std::string& keys = "");

}  // namespace carousel::test
