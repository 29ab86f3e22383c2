#pragma once
// The calling thread's current context. The driver is asked as it is: where nobody in this process has loaded
// it nothing is loaded, and nothing is initialised, so that a program that forks later still can.

#include <cuda.h>

namespace carousel::device::cuda {

/// Null: the thread has none, or nobody has loaded the driver.
[[nodiscard]] CUcontext current_context() noexcept;
/// `context` is one of current_context(). One that is gone meanwhile is left.
void make_current(CUcontext context) noexcept;

}  // namespace carousel::device::cuda
