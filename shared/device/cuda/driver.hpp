#pragma once
// The few driver API functions without an equivalent in the runtime API (virtual memory management, streams
// that wait for a word). They are resolved through the static runtime, because a program that links libcuda
// itself would not start on a machine without a driver.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace carousel::device::cuda {

struct driver_api {
    decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
    decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
    decltype(&::cuMemCreate) create = nullptr;
    decltype(&::cuMemRelease) release = nullptr;
    decltype(&::cuMemExportToShareableHandle) export_handle = nullptr;
    decltype(&::cuMemImportFromShareableHandle) import_handle = nullptr;
    decltype(&::cuMemAddressReserve) reserve = nullptr;
    decltype(&::cuMemAddressFree) free_address = nullptr;
    decltype(&::cuMemMap) map = nullptr;
    decltype(&::cuMemUnmap) unmap = nullptr;
    decltype(&::cuMemSetAccess) set_access = nullptr;
    decltype(&::cuStreamWaitValue32) stream_wait_value = nullptr;
};

/// Resolves the functions at the first call. Throws device_error if there is no driver, or if it lacks a
/// function.
[[nodiscard]] const driver_api& driver();

/// The two enumerations share their numbers.
[[nodiscard]] inline cudaError_t as_runtime(CUresult result) noexcept {
    return static_cast<cudaError_t>(result);
}

}  // namespace carousel::device::cuda
