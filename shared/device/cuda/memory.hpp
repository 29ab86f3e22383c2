#pragma once
// Memory as a GPU sees it: imported VMM allocations, legacy IPC memory, page-locked memfds, and this
// process's own memory. All memory is mapped at set-up and unmapped at exit; nothing in this file runs during
// frames.

#include <memory>

#include "device/backend.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

/// Maps any handle for the GPU `on`. Throws device_error if peer access is missing, the GPU is wrong or
/// invisible, the owner has died, or the handle is damaged.
[[nodiscard]] std::unique_ptr<mapping> map_memory(const gpu& on, const memory_handle& handle, access wanted);

/// Zero-filled memory private to this process, on the GPU.
[[nodiscard]] std::unique_ptr<mapping> allocate_device(const gpu& on, u64 bytes);

/// Zero-filled page-locked memory with the same address on the CPU and the GPU.
[[nodiscard]] std::unique_ptr<mapping> allocate_pinned(const gpu& on, u64 bytes);

/// Returns "1.5 GiB free of 139.8 GiB", or "" if the GPU's free memory is unknown.
[[nodiscard]] std::string free_text(const gpu& on) noexcept;

}  // namespace carousel::device::cuda
