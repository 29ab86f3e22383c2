#pragma once
// Does to this process what `carousel inject` asked it for (shm/injected_fault.hpp), in the middle of a frame
// and under its clock.

#include "ring/worker.hpp"
#include "stages/runner/runtime.hpp"

namespace carousel::stages {

/// One load of a word that nobody writes, when nothing is asked for.
[[nodiscard]] bool is_fault_requested(const runtime& r) noexcept;

/// The main thread, inside process()'s clock, with `at_work` leased. A GPU fault, a scribble and an overrun
/// are enqueued on the runtime's queue and show when the frame's event is waited for (a write of the CPU at
/// once); the others don't return.
void inject_fault(runtime& r, const ring::job& at_work);

}  // namespace carousel::stages
