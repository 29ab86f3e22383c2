#include "device/cuda/driver.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"
#include "device/cuda/check.hpp"

namespace carousel::device::cuda {
namespace {

template <typename Function>
void find(Function& into, const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult answer = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &answer);
#else
    const cudaError_t status = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &answer);
#endif
    if (status != cudaSuccess)
        fail_setup(status, fmt::format("looking up {} in the driver", name).c_str(), "CUDA");
    if (answer != cudaDriverEntryPointSuccess || found == nullptr) {
        throw device_error(
            fmt::format("CUDA: the driver has no {} of CUDA 12.0; install a newer NVIDIA driver", name));
    }
    into = reinterpret_cast<Function>(found);
}

driver_api look_up() {
    driver_api api;
    find(api.device_get_attribute, "cuDeviceGetAttribute");
    find(api.granularity, "cuMemGetAllocationGranularity");
    find(api.create, "cuMemCreate");
    find(api.release, "cuMemRelease");
    find(api.export_handle, "cuMemExportToShareableHandle");
    find(api.import_handle, "cuMemImportFromShareableHandle");
    find(api.reserve, "cuMemAddressReserve");
    find(api.free_address, "cuMemAddressFree");
    find(api.map, "cuMemMap");
    find(api.unmap, "cuMemUnmap");
    find(api.set_access, "cuMemSetAccess");
    find(api.stream_wait_value, "cuStreamWaitValue32");
    return api;
}

}  // namespace

const driver_api& driver() {
    static const driver_api api = look_up();  // if this throws, the next call tries again
    return api;
}

}  // namespace carousel::device::cuda
