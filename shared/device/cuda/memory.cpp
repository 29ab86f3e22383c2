#include "device/cuda/memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/vmm.hpp"

namespace carousel::device::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(memory_handle::ipc));

/// Refuses memory of a GPU that `on` can't reach; what this process doesn't see it can't ask about.
void require_reach(const gpu& on, const memory_handle& handle) {
    if (handle.uuid.empty() || handle.uuid == on.uuid) return;
    const gpu owner = find_gpu({device_kind::cuda, handle.uuid, -1});
    std::string why;
    if (!has_peer_access(on, owner, why))
        throw device_error("mapping " + std::string(name_of(handle.kind)) + " memory: " + why);
}

class vmm_mapping final : public mapping {
public:
    vmm_mapping(const gpu& on, const memory_handle& handle, access wanted) {
        if (handle.fd < 0 || handle.bytes == 0) {
            throw device_error(fmt::format("{}: a vmm handle with fd {} and {} bytes is no memory",
                                           on.label(), handle.fd, handle.bytes));
        }
        on.bind();
        const driver_api& api = driver();
        vmm_handle imported;
        void* fd = reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle.fd));
        CAROUSEL_CUDA_SETUP(on.label(), as_runtime(api.import_handle(
                                            &imported.value, fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)));
        imported.valid = true;
        range_.emplace(on, imported.value, handle.bytes, wanted);
        read_only_ = wanted == access::read;
        data_ = range_->data();
        bytes_ = handle.bytes;
    }

private:
    std::optional<vmm_range> range_;
};

/// cudaIpcOpenMemHandle has no mapping for reading alone: never guarded.
class ipc_mapping final : public mapping {
public:
    ipc_mapping(const gpu& on, const memory_handle& handle) : on_(on) {
        on.bind();
        cudaIpcMemHandle_t raw{};
        std::memcpy(&raw, handle.ipc.data(), sizeof raw);
        void* at = nullptr;
        CAROUSEL_CUDA_SETUP(on.label(), cudaIpcOpenMemHandle(&at, raw, cudaIpcMemLazyEnablePeerAccess));
        data_ = static_cast<std::byte*>(at);
        bytes_ = handle.bytes;
    }
    ~ipc_mapping() override {
        if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaIpcCloseMemHandle(data_));
    }

private:
    const gpu& on_;
};

/// Pages that are mapped for reading can be page-locked for reading alone, where the GPU knows that.
access lockable(const gpu& on, access wanted) {
    const bool can = on.attribute(cudaDevAttrHostRegisterReadOnlySupported) != 0;
    return wanted == access::read && can ? access::read : access::write;
}

/// A memfd, page-locked: the CPU stage at the other end of the link maps the same pages.
class locked_memfd final : public mapping {
public:
    locked_memfd(const gpu& on, const memory_handle& handle, access wanted)
        : on_(on), memory_(handle, lockable(on, wanted)) {
        on.bind();
        host_ = memory_.host_data();
        bytes_ = memory_.bytes();
        read_only_ = memory_.read_only();
        const cudaError_t status =
            cudaHostRegister(host_, bytes_,
                             cudaHostRegisterMapped | cudaHostRegisterPortable |
                                 (read_only_ ? cudaHostRegisterReadOnly : cudaHostRegisterDefault));
        if (status != cudaSuccess) {
            fail_setup(
                status,
                fmt::format("page-locking {} bytes of shared host memory (cudaHostRegister)", bytes_).c_str(),
                on.label());
        }
        void* at = nullptr;
        if (const cudaError_t found = cudaHostGetDevicePointer(&at, host_, 0); found != cudaSuccess) {
            CAROUSEL_CUDA_LOG(cudaHostUnregister(host_));
            fail_setup(found, "cudaHostGetDevicePointer", on.label());
        }
        data_ = static_cast<std::byte*>(at);
    }
    ~locked_memfd() override {
        if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaHostUnregister(host_));
    }

private:
    const gpu& on_;
    memfd_mapping memory_;  // unmapped after it is unlocked
};

class device_memory final : public mapping {
public:
    device_memory(const gpu& on, u64 bytes) : on_(on) {
        on.bind();
        bytes_ = bytes == 0 ? 1 : bytes;
        void* at = nullptr;
        if (const cudaError_t status = cudaMalloc(&at, bytes_); status != cudaSuccess) {
            fail_setup(status, fmt::format("cudaMalloc of {} bytes ({})", bytes_, free_text(on)).c_str(),
                       on.label());
        }
        data_ = static_cast<std::byte*>(at);
        // The queues are non-blocking streams: nothing orders them behind this fill, so it is waited for.
        CAROUSEL_CUDA_SETUP(on.label(), cudaMemsetAsync(at, 0, bytes_, cudaStreamLegacy));
        CAROUSEL_CUDA_SETUP(on.label(), cudaStreamSynchronize(cudaStreamLegacy));
    }
    ~device_memory() override {
        if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaFree(data_));
    }

private:
    const gpu& on_;
};

class pinned_memory final : public mapping {
public:
    pinned_memory(const gpu& on, u64 bytes) : on_(on) {
        on.bind();
        bytes_ = bytes == 0 ? 1 : bytes;
        void* host = nullptr;
        if (const cudaError_t status =
                cudaHostAlloc(&host, bytes_, cudaHostAllocMapped | cudaHostAllocPortable);
            status != cudaSuccess) {
            fail_setup(status, fmt::format("cudaHostAlloc of {} bytes", bytes_).c_str(), on.label());
        }
        host_ = static_cast<std::byte*>(host);
        data_ = host_;  // one address for both: unified addressing, which every 64-bit Linux driver has
        std::memset(host, 0, bytes_);
    }
    ~pinned_memory() override {
        if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaFreeHost(host_));
    }

private:
    const gpu& on_;
};

}  // namespace

std::string free_text(const gpu& on) noexcept {
    std::size_t free_bytes = 0, total = 0;
    if (!on.try_bind() || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) {
        (void)cudaGetLastError();
        return {};
    }
    constexpr double gib = 1024.0 * 1024.0 * 1024.0;
    try {
        return fmt::format("{:.2f} GiB free of {:.2f} GiB", static_cast<double>(free_bytes) / gib,
                           static_cast<double>(total) / gib);
    } catch (...) {
        return {};
    }
}

std::unique_ptr<mapping> map_memory(const gpu& on, const memory_handle& handle, access wanted) {
    switch (handle.kind) {
        case memory_kind::memfd:
            try {
                return std::make_unique<locked_memfd>(on, handle, wanted);
            } catch (const shm_error& e) {
                throw device_error(fmt::format("{}: {}", on.label(), e.what()));
            }
        case memory_kind::vmm:
            require_reach(on, handle);
            return std::make_unique<vmm_mapping>(on, handle, wanted);
        case memory_kind::ipc:
            require_reach(on, handle);
            return std::make_unique<ipc_mapping>(on, handle);
    }
    throw device_error(
        fmt::format("{}: unknown kind of memory {}", on.label(), static_cast<int>(handle.kind)));
}

std::unique_ptr<mapping> allocate_device(const gpu& on, u64 bytes) {
    return std::make_unique<device_memory>(on, bytes);
}
std::unique_ptr<mapping> allocate_pinned(const gpu& on, u64 bytes) {
    return std::make_unique<pinned_memory>(on, bytes);
}

}  // namespace carousel::device::cuda
