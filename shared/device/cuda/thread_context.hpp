#pragma once
// The calling thread's current context. Queries the driver only if it is already loaded in this process;
// never loads or initialises it, so that a program can still fork later.

#include <cuda.h>

namespace carousel::device::cuda {

/// Null if the thread has no context, or the driver is not loaded in this process.
[[nodiscard]] CUcontext current_context() noexcept;
/// `context` was returned by current_context(). No effect if the context has been destroyed in the meantime.
void make_current(CUcontext context) noexcept;

}  // namespace carousel::device::cuda
