#pragma once
// What the main thread of a stage does while no frame can begin: how long it polls before it sleeps, and
// under which name its wait is counted and traced.

#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::stages {

/// How long an idle stage polls its producers' events before it sleeps, in ns.
inline constexpr u64 poll_ns = 50'000;
/// The same with latency = "low", after a frame: a source of 60 frames per second or more never lets it
/// sleep.
inline constexpr u64 poll_for_low_ns = 20'000'000;

/// How long an idle thread of this stage polls, in ns; 0 if polling threads would share cores. Each polling
/// thread takes a core: one per seat, and with latency = "low" one more per seat of a sink.
[[nodiscard]] u64 poll_of(const runtime& r);

[[nodiscard]] telemetry::wait_reason reason_of(ring::outcome o) noexcept;
/// The counter of a stage's time in such a wait, in ns.
[[nodiscard]] shm::word& counter_of(shm::stage_counters& n, telemetry::wait_reason why) noexcept;
/// Text in a profiler's timeline.
[[nodiscard]] const char* text_of(telemetry::wait_reason why) noexcept;

}  // namespace carousel::stages
