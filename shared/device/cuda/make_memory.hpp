#pragma once
// Creates shareable GPU memory: used by carousel-alloc for the supervisor. Not for stages, which only map the
// memory that they receive.

#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "device/cuda/devices.hpp"

namespace carousel::device::cuda {

class memory_maker {
public:
    /// Opens the GPU. Throws device_error.
    explicit memory_maker(const device_id& id);
    ~memory_maker();
    memory_maker(const memory_maker&) = delete;
    memory_maker& operator=(const memory_maker&) = delete;

    /// Creates zero-filled memory with a POSIX fd that belongs to the caller and is the only reference to the
    /// memory. Throws device_error if this GPU or driver does not support such fds, or if memory is short
    /// (with the requested and the free size).
    [[nodiscard]] memory_handle make_vmm(u64 bytes);
    /// Creates zero-filled memory with a cudaIpcMemHandle_t. The memory exists as long as this object, or
    /// longer where it is mapped.
    [[nodiscard]] memory_handle make_ipc(u64 bytes);

    [[nodiscard]] const gpu& on() const noexcept { return on_; }

private:
    void require_free(u64 bytes, const char* kind) const;
    gpu on_;
    std::vector<std::unique_ptr<mapping>> owned_;
};

}  // namespace carousel::device::cuda
