#include "device/cuda/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "device/cpu/memfd.hpp"
#include "device/cuda/check.hpp"

namespace carousel::device::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(memory_handle::ipc));

/// Throws device_error if the GPU `on` can't access the memory of the given GPU, or if this process does not
/// see the given GPU.
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
        if (handle.bytes == 0 || handle.pieces != handle.piece_fds.size()) {
            throw device_error(
                fmt::format("{}: a vmm handle with {} fds for {} pieces and {} bytes is invalid", on.label(),
                            handle.piece_fds.size(), handle.pieces, handle.bytes));
        }
        on.bind();
        read_only_ = wanted == access::read;
        bytes_ = handle.bytes;
        if (handle.pieces == 0) {
            range_.emplace(on, bytes_);
            import(on, handle.fd, 0, bytes_, wanted);
        } else {
            piece_bytes_ = handle.piece_bytes();
            stride_ = piece_bytes_ + gap_bytes;
            range_.emplace(on, handle.pieces * stride_);
            for (u32 k = 0; k < handle.pieces; ++k)
                import(on, handle.piece_fds[k], k * stride_, piece_bytes_, wanted);
        }
        data_ = range_->data();
    }

private:
    // on all GPUs so far, this size is a multiple of the mapping granularity
    static constexpr u64 gap_bytes = 2 * 1024 * 1024;

    void import(const gpu& on, int fd, u64 offset, u64 bytes, access wanted) {
        if (fd < 0) throw device_error(fmt::format("{}: a vmm handle without an fd is invalid", on.label()));
        vmm_handle imported;
        void* number = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));
        CAROUSEL_CUDA_SETUP(on.label(),
                            as_runtime(driver().import_handle(&imported.value, number,
                                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)));
        imported.valid = true;
        range_->map(imported.value, offset, bytes, wanted);
    }
    std::optional<vmm_range> range_;
};

/// cudaIpcOpenMemHandle has no read-only mapping, so this memory is never guarded.
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

/// Returns the access with which host memory is mapped. The result is access::read if `wanted` is
/// access::read and the GPU can page-lock read-only pages. If the GPU cannot, the pages must be mapped for
/// writing.
access lockable(const gpu& on, access wanted) {
    const bool can = on.attribute(cudaDevAttrHostRegisterReadOnlySupported) != 0;
    return wanted == access::read && can ? access::read : access::write;
}

/// Page-locked pieces can have gaps only on a GPU that uses the same addresses for them as the CPU.
gaps lockable_gaps(const gpu& on) {
    return on.attribute(cudaDevAttrCanUseHostPointerForRegisteredMem) != 0 ? gaps::yes : gaps::no;
}

/// A memfd that is page-locked; the CPU stage at the other end of the link maps the same pages.
class locked_memfd final : public mapping {
public:
    locked_memfd(const gpu& on, const memory_handle& handle, access wanted)
        : on_(on), memory_(handle, lockable(on, wanted), lockable_gaps(on)) {
        on.bind();
        host_ = memory_.host_data();
        bytes_ = memory_.bytes();
        read_only_ = memory_.read_only();
        if (memory_.has_gaps()) {
            piece_bytes_ = handle.piece_bytes();
            stride_ = memory_.stride(piece_bytes_);
            for (; locked_ < handle.pieces; ++locked_) lock(locked_ * stride_, piece_bytes_);
            data_ = host_;
        } else {
            if (handle.pieces != 0) stride_ = piece_bytes_ = handle.piece_bytes();
            lock(0, bytes_);
            ++locked_;
            data_ = device_address();
        }
    }
    ~locked_memfd() override { unlock(); }

private:
    void lock(u64 offset, u64 bytes) {
        const cudaError_t status =
            cudaHostRegister(host_ + offset, bytes,
                             cudaHostRegisterMapped | cudaHostRegisterPortable |
                                 (read_only_ ? cudaHostRegisterReadOnly : cudaHostRegisterDefault));
        if (status == cudaSuccess) return;
        unlock();
        fail_setup(
            status,
            fmt::format("page-locking {} bytes of shared host memory (cudaHostRegister)", bytes).c_str(),
            on_.label());
    }
    std::byte* device_address() {
        void* at = nullptr;
        const cudaError_t found = cudaHostGetDevicePointer(&at, host_, 0);
        if (found == cudaSuccess) return static_cast<std::byte*>(at);
        unlock();
        fail_setup(found, "cudaHostGetDevicePointer", on_.label());
    }
    void unlock() noexcept {
        if (locked_ == 0 || !on_.try_bind()) return;
        for (u32 k = 0; k < locked_; ++k) CAROUSEL_CUDA_LOG(cudaHostUnregister(host_ + k * stride_));
        locked_ = 0;
    }

    const gpu& on_;
    u32 locked_ = 0;        ///< number of locked pieces, or 1 for a single block
    memfd_mapping memory_;  // declared last, so that it is unmapped after it is unlocked
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
        // Waits until the memory is cleared, because the queues are non-blocking streams, which would not
        // wait for this operation.
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
        data_ = host_;  // the CPU and the GPU use the same address, because every 64-bit Linux driver has
                        // unified addressing
        std::memset(host, 0, bytes_);
    }
    ~pinned_memory() override {
        if (on_.try_bind()) CAROUSEL_CUDA_LOG(cudaFreeHost(host_));
    }

private:
    const gpu& on_;
};

// Sizes are rounded up to a multiple of the block size of cudaMalloc's own pools, so that no two handles
// refer to one block.
constexpr u64 ipc_granularity = 2 * 1024 * 1024;

u64 round_up(u64 bytes, u64 step) noexcept { return (bytes + step - 1) / step * step; }

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

vmm_range::vmm_range(const gpu& on, u64 bytes) : on_(on), bytes_(bytes) {
    CAROUSEL_CUDA_SETUP(on.label(), as_runtime(driver().reserve(&at_, bytes, 0, 0, 0)));
}

void vmm_range::map(CUmemGenericAllocationHandle memory, u64 offset, u64 bytes, device::access wanted) {
    const driver_api& api = driver();
    const CUdeviceptr at = at_ + offset;
    parts_.reserve(parts_.size() + 1);  // so that push_back cannot throw after a successful map
    CAROUSEL_CUDA_SETUP(on_.label(), as_runtime(api.map(at, bytes, 0, memory, 0)));
    parts_.push_back({at, bytes});
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = on_.ordinal;
    access.flags =
        wanted == device::access::read ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CAROUSEL_CUDA_SETUP(on_.label(), as_runtime(api.set_access(at, bytes, &access, 1)));
}

vmm_range::~vmm_range() {
    if (!on_.try_bind()) return;
    // driver() cannot throw, because it has resolved the functions before this object was made
    const driver_api& api = driver();
    for (const part& p : parts_) CAROUSEL_CUDA_LOG(as_runtime(api.unmap(p.at, p.bytes)));
    CAROUSEL_CUDA_LOG(as_runtime(api.free_address(at_, bytes_)));
}

vmm_handle::~vmm_handle() {
    if (valid) CAROUSEL_CUDA_LOG(as_runtime(driver().release(value)));
}

memory_maker::memory_maker(const device_id& id) {
    on_ = find_gpu(id);
    open_gpu(on_);
}

memory_maker::~memory_maker() = default;

void memory_maker::require_free(u64 bytes, const char* kind) const {
    std::size_t free_bytes = 0, total = 0;
    CAROUSEL_CUDA_SETUP(on_.label(), cudaMemGetInfo(&free_bytes, &total));
    if (bytes <= free_bytes) return;
    throw device_error(fmt::format(
        "{}: too little GPU memory: {:.1f} MiB of {} memory requested, {:.1f} MiB free of {:.1f} MiB; use a "
        "smaller size or window, or free GPU memory (nvidia-smi shows which processes hold it)",
        on_.label(), static_cast<double>(bytes) / 1048576.0, kind,
        static_cast<double>(free_bytes) / 1048576.0, static_cast<double>(total) / 1048576.0));
}

memory_handle memory_maker::make_vmm(u64 bytes) {
    on_.bind();
    if (bytes == 0) throw device_error(on_.label() + ": 0 bytes of vmm memory were requested");
    if (on_.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0 ||
        on_.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
        throw device_error(on_.label() +
                           ": this GPU or driver has no VMM memory with POSIX fds; use memory = \"ipc\"");
    }
    const driver_api& api = driver();
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = on_.ordinal;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    // Allows a network device to read a ring, for links with memory = "direct".
    properties.allocFlags.gpuDirectRDMACapable =
        on_.attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0 ? 1 : 0;
    std::size_t step = 0;
    CAROUSEL_CUDA_SETUP(
        on_.label(), as_runtime(api.granularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)));
    memory_handle made;
    made.kind = memory_kind::vmm;
    made.uuid = on_.uuid;
    made.bytes = round_up(bytes, step);
    require_free(made.bytes, "vmm");
    vmm_handle memory;
    if (const CUresult result = api.create(&memory.value, made.bytes, &properties, 0);
        result != CUDA_SUCCESS) {
        fail_setup(as_runtime(result),
                   fmt::format("cuMemCreate of {} bytes ({})", made.bytes, free_text(on_)).c_str(),
                   on_.label());
    }
    memory.valid = true;
    {
        // the memory is mapped only to clear it, because status words start as 0
        vmm_range range(on_, made.bytes);
        range.map(memory.value, 0, made.bytes, access::write);
        CAROUSEL_CUDA_SETUP(on_.label(), cudaMemset(range.data(), 0, made.bytes));
        CAROUSEL_CUDA_SETUP(on_.label(), cudaDeviceSynchronize());
    }
    CAROUSEL_CUDA_SETUP(
        on_.label(),
        as_runtime(api.export_handle(&made.fd, memory.value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)));
    if (::fcntl(made.fd, F_SETFD, FD_CLOEXEC) != 0)
        log::warning(
            "fcntl(FD_CLOEXEC) failed for an fd of GPU memory: programs that this process executes inherit "
            "the fd");
    return made;
}

memory_handle memory_maker::make_ipc(u64 bytes) {
    on_.bind();
    if (bytes == 0) throw device_error(on_.label() + ": 0 bytes of ipc memory were requested");
    memory_handle made;
    made.kind = memory_kind::ipc;
    made.uuid = on_.uuid;
    made.bytes = round_up(bytes, ipc_granularity);
    require_free(made.bytes, "ipc");
    auto memory = allocate_device(on_, made.bytes);
    cudaIpcMemHandle_t raw{};
    CAROUSEL_CUDA_SETUP(on_.label(), cudaIpcGetMemHandle(&raw, memory->data()));
    std::memcpy(made.ipc.data(), &raw, sizeof raw);
    owned_.push_back(std::move(memory));
    return made;
}

}  // namespace carousel::device::cuda
