#include "ipc/c/gpu_access.hpp"

#include <cuda_runtime_api.h>

#include <mutex>

#include "core/errors.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/devices.hpp"
#include "device/cuda/memory.hpp"
#include "ipc/attachment.hpp"
#include "ipc/cuda/gpu_mapping.hpp"

namespace carousel::ipc {
namespace {

namespace cuda = device::cuda;

/// Makes a GPU the calling thread's current GPU and restores the previous one, because the program may work
/// on another GPU.
class current_gpu {
public:
    explicit current_gpu(int ordinal) {
        (void)cudaGetDevice(&before_);
        CAROUSEL_CUDA_SETUP("CUDA", cudaSetDevice(ordinal));
    }
    ~current_gpu() { (void)cudaSetDevice(before_); }
    current_gpu(const current_gpu&) = delete;
    current_gpu& operator=(const current_gpu&) = delete;

private:
    int before_ = 0;
};

class mapped_gpu final : public gpu_access {
public:
    mapped_gpu(std::shared_ptr<attachment> to, int ordinal)
        : on_(cuda::find_gpu({device::device_kind::cuda, "", ordinal})), mapping_(std::move(to)) {}
    [[nodiscard]] int ordinal() const noexcept override { return on_.ordinal; }
    void wait_for_work() override {
        const current_gpu here(on_.ordinal);
        if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess) {
            // Work may still be running: this process counts as fenced only when it has exited.
            mapping_.to()->fence_by_exit();
            throw cuda_error(status, std::string("waiting for this process's work on ") + on_.label() + ": " +
                                         cudaGetErrorString(status) +
                                         ": the block stays owned by this process until it exits");
        }
    }
    [[nodiscard]] const std::byte* read_only() override {
        const std::lock_guard lock(mutex_);
        if (!read_only_) {
            const current_gpu here(on_.ordinal);
            const space_block& s = mapping_.to()->block();
            device::memory_handle handle;
            handle.kind = device::memory_kind::vmm;
            handle.bytes = s.gpu_bytes;
            handle.fd = mapping_.to()->gpu_fd();
            handle.uuid = s.gpu_uuid;
            read_only_ = cuda::map_memory(on_, handle, device::access::read);
        }
        return read_only_->data();
    }

private:
    cuda::gpu on_;
    std::mutex mutex_;                            // guards the creation of read_only_
    std::unique_ptr<device::mapping> read_only_;  // unmapped after mapping_, which waits for the GPU's work
    gpu_mapping mapping_;
};

}  // namespace

std::shared_ptr<gpu_access> map_gpu(std::shared_ptr<attachment> to, int ordinal) {
    const current_gpu here(ordinal);  // gpu_mapping maps for the current GPU
    return std::make_shared<mapped_gpu>(std::move(to), ordinal);
}

}  // namespace carousel::ipc
