#pragma once
// For a library that calls CUDA by itself, in whatever context the calling thread has.

#include "device/backend.hpp"

namespace carousel::device {

/// Makes the context's GPU the calling thread's current one. Nothing on the CPU. Throws cuda_error.
void bind_thread(const context& to);

}  // namespace carousel::device
