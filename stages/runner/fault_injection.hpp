#pragma once
// Does to this process what `carousel inject` asked it for (shm/injected_fault.hpp), in the middle of a frame
// and under its clock.

#include "stages/runner/runtime.hpp"

namespace carousel::stages {

/// The main thread, inside process()'s clock. One load of a word that nobody writes, when nothing is asked
/// for. A GPU fault is enqueued on the runtime's queue and shows when the frame's event is waited for; the
/// others don't return.
void inject_fault_if_asked(runtime& r);

}  // namespace carousel::stages
