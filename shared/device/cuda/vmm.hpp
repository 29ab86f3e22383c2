#pragma once
// One reservation of addresses with one physical allocation mapped into it, for one GPU.

#include <cuda.h>

#include "core/types.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

class vmm_range {
public:
    /// Maps `bytes` of `memory` for `on`. Throws device_error. `memory` may be released afterwards: the
    /// mapping keeps it.
    /// For reading: a kernel's write to it is an illegal address, and a cudaMemset is refused.
    vmm_range(const gpu& on, CUmemGenericAllocationHandle memory, u64 bytes, access wanted);
    ~vmm_range();
    vmm_range(const vmm_range&) = delete;
    vmm_range& operator=(const vmm_range&) = delete;
    [[nodiscard]] std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(at_); }

private:
    void undo() noexcept;
    const gpu& on_;
    CUdeviceptr at_ = 0;
    u64 bytes_;
    bool mapped_ = false;
};

/// Releases the handle of an allocation; the memory lives on while it is mapped or its fd is open.
class vmm_handle {
public:
    vmm_handle() = default;
    ~vmm_handle();
    vmm_handle(const vmm_handle&) = delete;
    vmm_handle& operator=(const vmm_handle&) = delete;
    CUmemGenericAllocationHandle value = 0;
    bool valid = false;
};

}  // namespace carousel::device::cuda
