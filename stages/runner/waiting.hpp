#pragma once
// What the main thread of a stage does while it can begin no frame: for how long it polls before it sleeps,
// and under which name its wait is counted and traced.

#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::stages {

/// How long an idle stage polls its producers' events before it sleeps.
inline constexpr u64 poll_ns = 50'000;
/// With latency = "low", behind a frame: a source of 60 frames/s or more never lets it sleep.
inline constexpr u64 poll_for_low_ns = 20'000'000;

/// For how long an idle thread of this stage polls, in ns; 0 where threads that poll would share cores. Such
/// threads take a core each: one a seat, and one more of each stage at the end.
[[nodiscard]] u64 poll_of(const runtime& r);

[[nodiscard]] telemetry::wait_reason reason_of(ring::outcome o) noexcept;
/// The counter of a stage's time in such a wait, in ns.
[[nodiscard]] shm::word& counter_of(shm::stage_counters& n, telemetry::wait_reason why) noexcept;
/// What a profiler's timeline shows.
[[nodiscard]] const char* text_of(telemetry::wait_reason why) noexcept;

}  // namespace carousel::stages
