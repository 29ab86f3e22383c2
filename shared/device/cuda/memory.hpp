#pragma once
// Memory as a GPU sees it: imported VMM allocations, legacy IPC memory, page-locked memfds, and this
// process's own. Everything is mapped at set-up and unmapped at the end; nothing here runs while frames flow.

#include <memory>

#include "device/backend.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

/// Maps any handle for the GPU `on`. Throws device_error: no peer access, wrong or invisible GPU, owner gone,
/// damaged handle.
[[nodiscard]] std::unique_ptr<mapping> map_memory(const gpu& on, const memory_handle& handle, access wanted);

/// Zero-filled memory of this process alone, on the GPU.
[[nodiscard]] std::unique_ptr<mapping> allocate_device(const gpu& on, u64 bytes);

/// Zero-filled page-locked memory that CPU and GPU address by the same pointer.
[[nodiscard]] std::unique_ptr<mapping> allocate_pinned(const gpu& on, u64 bytes);

/// "1.5 GiB free of 139.8 GiB", or "" when the GPU doesn't say.
[[nodiscard]] std::string free_text(const gpu& on) noexcept;

}  // namespace carousel::device::cuda
