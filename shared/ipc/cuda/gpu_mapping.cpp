#include "ipc/cuda/gpu_mapping.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/devices.hpp"
#include "device/cuda/memory.hpp"
#include "ipc/attachment.hpp"
#include "ipc/cuda/stream_gates.hpp"

namespace carousel::ipc {
namespace cuda = device::cuda;

struct gpu_mapping::parts {
    std::shared_ptr<attachment> to;
    cuda::gpu on;
    std::unique_ptr<device::mapping> mapping;
    std::mutex mutex;
    std::unique_ptr<stream_gates> gates;
};

gpu_mapping::gpu_mapping(std::shared_ptr<attachment> to) : parts_(std::make_unique<parts>()) {
    const space_block& s = to->block();
    if (s.gpu_bytes == 0)
        throw config_error(
            fmt::format("the space \"{}\" has no GPU memory: hold it with GPU memory (carousel hold {} "
                        "--device cuda:0); the space of a running pipeline has none",
                        s.name, s.name));
    if (to->gpu_base.load() != nullptr)
        throw config_error(
            fmt::format("the GPU memory of the space \"{}\" is already mapped in this process: use a copy of "
                        "that gpu_space",
                        s.name));
    int ordinal = 0;
    CAROUSEL_CUDA_SETUP("CUDA", cudaGetDevice(&ordinal));
    parts_->on = cuda::find_gpu({device::device_kind::cuda, "", ordinal});
    CAROUSEL_CUDA_SETUP(parts_->on.label(), cudaSetDevice(ordinal));
    CAROUSEL_CUDA_SETUP(parts_->on.label(), cudaFree(nullptr));  // creates the context
    device::memory_handle handle;
    handle.kind = device::memory_kind::vmm;
    handle.bytes = s.gpu_bytes;
    handle.fd = to->gpu_fd();
    handle.uuid = s.gpu_uuid;
    parts_->mapping = cuda::map_memory(parts_->on, handle, device::access::write);
    parts_->to = std::move(to);
    parts_->to->gpu_base = parts_->mapping->data();
}

gpu_mapping::~gpu_mapping() {
    int before = 0;
    (void)cudaGetDevice(&before);
    cudaError_t status = cudaSetDevice(parts_->on.ordinal);
    if (status == cudaSuccess) status = cudaDeviceSynchronize();
    if (status != cudaSuccess) {
        // Kernels may still be running. In this case this process counts as fenced only when it has exited.
        parts_->to->fence_by_exit();
        (void)cudaGetLastError();
    }
    parts_->gates.reset();
    parts_->to->gpu_base = nullptr;
    parts_->mapping.reset();
    (void)cudaSetDevice(before);
}

stream_gates& gpu_mapping::gates() {
    const std::lock_guard lock(parts_->mutex);
    if (!parts_->gates) parts_->gates = std::make_unique<stream_gates>(*parts_->to, parts_->on.ordinal);
    return *parts_->gates;
}

std::byte* gpu_mapping::data() const noexcept { return parts_->mapping->data(); }
u64 gpu_mapping::bytes() const noexcept { return parts_->mapping->bytes(); }

std::byte* gpu_mapping::at(u64 offset, u64 bytes) const {
    if (offset > this->bytes() || bytes > this->bytes() - offset)
        throw config_error(
            fmt::format("offset {} with {} bytes is not within the {} bytes of the space's GPU memory: use "
                        "the offset() of a block of this space",
                        offset, bytes, this->bytes()));
    return data() + offset;
}

u64 gpu_mapping::offset_of(const void* pointer) const {
    const auto* p = static_cast<const std::byte*>(pointer);
    if (p < data() || p >= data() + bytes())
        throw config_error(
            fmt::format("{} is not an address of the space's GPU memory in this process: a device pointer is "
                        "invalid in another process, so pass its offset() instead",
                        pointer));
    return static_cast<u64>(p - data());
}

int gpu_mapping::ordinal() const noexcept { return parts_->on.ordinal; }
const std::shared_ptr<attachment>& gpu_mapping::to() const noexcept { return parts_->to; }

}  // namespace carousel::ipc
