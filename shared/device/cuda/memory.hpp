#pragma once
// The memory of GPUs: allocating it for the supervisor, mapping it in stages, and reserving addresses for it.

#include <cuda.h>

#include <memory>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

// The kinds of memory that a GPU can access: imported VMM allocations, legacy IPC memory, page-locked memfds,
// and this process's own memory. All memory is mapped at set-up and unmapped at exit; nothing in this file
// runs during frames.

/// Maps any handle for the GPU `on`. Throws device_error if peer access is missing, the GPU is wrong or
/// invisible, the owner has died, or the handle is damaged.
[[nodiscard]] std::unique_ptr<mapping> map_memory(const gpu& on, const memory_handle& handle, access wanted);

/// Allocates zero-filled memory on the GPU, which is private to this process.
[[nodiscard]] std::unique_ptr<mapping> allocate_device(const gpu& on, u64 bytes);

/// Allocates zero-filled page-locked memory that has the same address on the CPU and the GPU.
[[nodiscard]] std::unique_ptr<mapping> allocate_pinned(const gpu& on, u64 bytes);

/// Returns "1.5 GiB free of 139.8 GiB", or "" if the GPU's free memory is unknown.
[[nodiscard]] std::string free_text(const gpu& on) noexcept;

// A range of addresses of one GPU. Physical allocations are mapped at some of these addresses; the others
// form gaps. A kernel that accesses a gap fails with an illegal address.

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

// Creates shareable GPU memory. Only carousel-alloc uses this class, on behalf of the supervisor; stages only
// map the memory that they receive.

class memory_maker {
public:
    /// Opens the GPU. Throws device_error.
    explicit memory_maker(const device_id& id);
    ~memory_maker();
    memory_maker(const memory_maker&) = delete;
    memory_maker& operator=(const memory_maker&) = delete;

    /// Creates zero-filled memory with a POSIX fd that belongs to the caller and is the only reference to the
    /// memory. Throws device_error if this GPU or driver does not support such fds, or if too little memory
    /// is free (the message contains the requested and the free size).
    [[nodiscard]] memory_handle make_vmm(u64 bytes);
    /// Creates zero-filled memory with a cudaIpcMemHandle_t. The memory exists as long as this object exists
    /// or a process maps the memory.
    [[nodiscard]] memory_handle make_ipc(u64 bytes);

    [[nodiscard]] const gpu& on() const noexcept { return on_; }

private:
    void require_free(u64 bytes, const char* kind) const;
    gpu on_;
    std::vector<std::unique_ptr<mapping>> owned_;
};

}  // namespace carousel::device::cuda
