#pragma once
// A range of addresses of one GPU, with physical allocations mapped at some of them. Unmapped addresses are a
// gap: a kernel that accesses it fails with an illegal address.

#include <cuda.h>

#include <vector>

#include "core/types.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

class vmm_range {
public:
    /// Reserves addresses for `bytes`. Throws device_error.
    vmm_range(const gpu& on, u64 bytes);
    ~vmm_range();
    vmm_range(const vmm_range&) = delete;
    vmm_range& operator=(const vmm_range&) = delete;
    /// Maps `bytes` of `memory` at `offset` of the range. Throws device_error. `memory` may be released
    /// afterwards: the mapping keeps the allocation. With access::read, a kernel that writes to the mapping
    /// fails with an illegal address, and a cudaMemset is refused.
    void map(CUmemGenericAllocationHandle memory, u64 offset, u64 bytes, access wanted);
    [[nodiscard]] std::byte* data() const noexcept { return reinterpret_cast<std::byte*>(at_); }

private:
    struct part {
        CUdeviceptr at;
        u64 bytes;
    };
    const gpu& on_;
    CUdeviceptr at_ = 0;
    u64 bytes_;
    std::vector<part> parts_;
};

/// Releases the handle of an allocation; the memory exists as long as it is mapped or its fd is open.
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
