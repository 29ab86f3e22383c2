#include "device/cuda/vmm.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/driver.hpp"

namespace carousel::device::cuda {

vmm_range::vmm_range(const gpu& on, CUmemGenericAllocationHandle memory, u64 bytes, device::access wanted)
    : on_(on), bytes_(bytes) {
    const driver_api& api = driver();
    CAROUSEL_CUDA_SETUP(on.label(), as_runtime(api.reserve(&at_, bytes, 0, 0, 0)));
    try {
        CAROUSEL_CUDA_SETUP(on.label(), as_runtime(api.map(at_, bytes, 0, memory, 0)));
        mapped_ = true;
        CUmemAccessDesc access{};
        access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.id = on.ordinal;
        access.flags = wanted == device::access::read ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                      : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CAROUSEL_CUDA_SETUP(on.label(), as_runtime(api.set_access(at_, bytes, &access, 1)));
    } catch (...) {
        undo();
        throw;
    }
}

vmm_range::~vmm_range() {
    if (on_.try_bind()) undo();
}

void vmm_range::undo() noexcept {
    const driver_api& api = driver();  // looked up already: this object exists
    if (mapped_) CAROUSEL_CUDA_LOG(as_runtime(api.unmap(at_, bytes_)));
    CAROUSEL_CUDA_LOG(as_runtime(api.free_address(at_, bytes_)));
}

vmm_handle::~vmm_handle() {
    if (valid) CAROUSEL_CUDA_LOG(as_runtime(driver().release(value)));
}

}  // namespace carousel::device::cuda
