#pragma once
// Executes in this process the fault that `carousel inject` requested (shm/injected_fault.hpp), during a
// frame and under the frame's clock.

#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"

namespace carousel::stages {

/// If no fault is requested, the call costs only one load of a word that no process is writing.
[[nodiscard]] bool is_fault_requested(const runtime& r) noexcept;

/// Runs on the main thread, inside process()'s clock, with `at_work` leased. A GPU fault, a scribble and an
/// overrun are enqueued on the runtime's queue and take effect by the end of the wait for the frame's event
/// (a write by the CPU takes effect at once); the other faults do not return.
void inject_fault(runtime& r, const ring::job& at_work);

}  // namespace carousel::stages
