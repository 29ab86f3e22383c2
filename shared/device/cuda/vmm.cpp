#include "device/cuda/vmm.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/driver.hpp"

namespace carousel::device::cuda {

vmm_range::vmm_range(const gpu& on, u64 bytes) : on_(on), bytes_(bytes) {
    CAROUSEL_CUDA_SETUP(on.label(), as_runtime(driver().reserve(&at_, bytes, 0, 0, 0)));
}

void vmm_range::map(CUmemGenericAllocationHandle memory, u64 offset, u64 bytes, device::access wanted) {
    const driver_api& api = driver();
    const CUdeviceptr at = at_ + offset;
    parts_.reserve(parts_.size() + 1);  // so that push_back after a successful map cannot throw
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
    const driver_api& api = driver();  // cannot throw, because it was resolved before this object was made
    for (const part& p : parts_) CAROUSEL_CUDA_LOG(as_runtime(api.unmap(p.at, p.bytes)));
    CAROUSEL_CUDA_LOG(as_runtime(api.free_address(at_, bytes_)));
}

vmm_handle::~vmm_handle() {
    if (valid) CAROUSEL_CUDA_LOG(as_runtime(driver().release(value)));
}

}  // namespace carousel::device::cuda
