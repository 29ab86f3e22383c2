#pragma once
// The waits of a stage's main thread while no frame can begin: how long it polls before it sleeps, and under
// which reason its wait is counted and traced.

#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"
#include "telemetry/trace_ring.hpp"

namespace carousel::stages {

/// Time for which an idle stage polls its producers' events before it sleeps, in ns.
inline constexpr u64 poll_ns = 50'000;
/// The same time after a frame if latency = "low"; with a source of 60 frames per second or more the stage
/// then never sleeps.
inline constexpr u64 poll_for_low_ns = 20'000'000;

/// Returns the time for which an idle thread of this stage polls, in ns; 0 if polling threads would share
/// cores. Each polling thread occupies one core: there is one such thread per seat, and with latency = "low"
/// one more per seat of a sink.
[[nodiscard]] u64 poll_of(const runtime& r);

[[nodiscard]] telemetry::wait_reason reason_of(ring::outcome o) noexcept;
/// Returns the counter of a stage's time in waits for this reason, in ns.
[[nodiscard]] shm::word& counter_of(shm::stage_counters& n, telemetry::wait_reason why) noexcept;
/// Text in a profiler's timeline.
[[nodiscard]] const char* text_of(telemetry::wait_reason why) noexcept;

}  // namespace carousel::stages
