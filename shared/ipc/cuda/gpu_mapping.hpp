#pragma once
// The GPU memory of a space in this process. This memory is mapped once, for one GPU, and unmapped before the
// process reports that none of its work writes to the space any more.

#include <cstddef>
#include <memory>
#include <string>

#include "core/types.hpp"

namespace carousel::ipc {

class attachment;
class stream_gates;

class gpu_mapping {
public:
    /// Maps the memory for the calling thread's current GPU. Throws config_error if the space has no GPU
    /// memory, or if this process has already mapped it; device_error if this GPU can't access that memory.
    explicit gpu_mapping(std::shared_ptr<attachment> to);
    /// Waits for this process's kernels on that GPU.
    ~gpu_mapping();
    gpu_mapping(const gpu_mapping&) = delete;
    gpu_mapping& operator=(const gpu_mapping&) = delete;
    [[nodiscard]] std::byte* data() const noexcept;
    [[nodiscard]] u64 bytes() const noexcept;
    /// Throws config_error if the range is not inside the memory.
    [[nodiscard]] std::byte* at(u64 offset, u64 bytes) const;
    /// Throws config_error if the pointer does not point into this mapping.
    [[nodiscard]] u64 offset_of(const void* pointer) const;
    [[nodiscard]] int ordinal() const noexcept;
    /// Returns the gates of this mapping's streams; the first call creates them.
    [[nodiscard]] stream_gates& gates();
    [[nodiscard]] const std::shared_ptr<attachment>& to() const noexcept;

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace carousel::ipc
