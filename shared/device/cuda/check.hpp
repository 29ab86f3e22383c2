#pragma once
// Converts CUDA status codes to Carousel's errors. Each message contains the call, the device, the error's
// name and what to do.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include "device/device_failure.hpp"

namespace carousel::device::cuda {

/// The status of a call that is replaced by an injected failure.
#define CAROUSEL_CUDA_CALL(call)                                              \
    [&]() -> cudaError_t {                                                    \
        const int injected_ = ::carousel::device::injected_failure();         \
        return injected_ == 0 ? (call) : static_cast<cudaError_t>(injected_); \
    }()

/// Returns true if the process's CUDA context is unusable after this error (illegal address, trap, ECC, ...).
[[nodiscard]] bool is_fault(cudaError_t status) noexcept;

/// Throws device_error, or cuda_error when the status is a fault. Clears the thread's last error.
[[noreturn]] void fail_setup(cudaError_t status, const char* call, std::string_view device);
/// Throws device_lost_error if the device is lost, otherwise cuda_error. Clears the thread's last error.
[[noreturn]] void fail_run(cudaError_t status, const char* call, std::string_view device);
/// For destructors: logs the failure. Logs nothing if the process is exiting, or if the status is a fault,
/// because every fault has already been thrown.
void log_failure(cudaError_t status, const char* call) noexcept;

}  // namespace carousel::device::cuda

/// During set-up: any status except success throws device_error. `on_what` names the GPU in the message.
#define CAROUSEL_CUDA_SETUP(on_what, call)                                                \
    do {                                                                                  \
        if (const cudaError_t status_ = CAROUSEL_CUDA_CALL(call); status_ != cudaSuccess) \
            ::carousel::device::cuda::fail_setup(status_, #call, on_what);                \
    } while (false)

/// During frames: any status except success throws cuda_error.
#define CAROUSEL_CUDA_RUN(on_what, call)                                                  \
    do {                                                                                  \
        if (const cudaError_t status_ = CAROUSEL_CUDA_CALL(call); status_ != cudaSuccess) \
            ::carousel::device::cuda::fail_run(status_, #call, on_what);                  \
    } while (false)

/// In destructors.
#define CAROUSEL_CUDA_LOG(call)                                         \
    do {                                                                \
        if (const cudaError_t status_ = (call); status_ != cudaSuccess) \
            ::carousel::device::cuda::log_failure(status_, #call);      \
    } while (false)

namespace carousel::device::cuda {

// The few driver API functions that have no equivalent in the runtime API (virtual memory management, streams
// that wait for a word). These functions are resolved through the static runtime, because a program that
// links libcuda itself would not start on a machine without a driver.

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

/// cudaError_t and CUresult use the same numbers.
[[nodiscard]] inline cudaError_t as_runtime(CUresult result) noexcept {
    return static_cast<cudaError_t>(result);
}

}  // namespace carousel::device::cuda
