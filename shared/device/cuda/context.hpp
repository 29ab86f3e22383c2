#pragma once
// One GPU as a device of this process.

#include <memory>

#include "device/backend.hpp"

namespace carousel::device::cuda {

/// Opens the GPU `id` in the order that CUDA requires (module loading, blocking sync, context), and runs the
/// status-word kernel once. Throws device_error.
[[nodiscard]] std::unique_ptr<device::context> open_context(const device_id& id);

/// `to` was returned by open_context(). Throws cuda_error.
void bind_thread(const device::context& to);

}  // namespace carousel::device::cuda
