#include "device/cuda/make_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "core/errors.hpp"
#include "core/log.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/memory.hpp"
#include "device/cuda/vmm.hpp"

namespace carousel::device::cuda {
namespace {

// Whole blocks of cudaMalloc's own pools, so that no two handles share one.
constexpr u64 ipc_granularity = 2 * 1024 * 1024;

u64 round_up(u64 bytes, u64 step) noexcept { return (bytes + step - 1) / step * step; }

}  // namespace

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
    // Allows a network device to read a ring (a link with memory = "direct").
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
        vmm_range range(on_, made.bytes);  // mapped only to clear the memory: status words start as 0
        range.map(memory.value, 0, made.bytes, access::write);
        CAROUSEL_CUDA_SETUP(on_.label(), cudaMemset(range.data(), 0, made.bytes));
        CAROUSEL_CUDA_SETUP(on_.label(), cudaDeviceSynchronize());
    }
    CAROUSEL_CUDA_SETUP(
        on_.label(),
        as_runtime(api.export_handle(&made.fd, memory.value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)));
    if (::fcntl(made.fd, F_SETFD, FD_CLOEXEC) != 0)
        log::warning("an fd of GPU memory stays open across exec");
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
