#include "device/cuda/check.hpp"

#include <fmt/format.h>

#include <string>

#include "core/errors.hpp"
#include "core/log.hpp"

namespace carousel::device::cuda {
namespace {

const char* advice(cudaError_t status) noexcept {
    switch (static_cast<int>(status)) {
        case cudaErrorMemoryAllocation:
            return "use a smaller size or window, or free GPU memory (nvidia-smi shows which processes hold "
                   "it)";
        case cudaErrorInsufficientDriver:
            return "install a newer NVIDIA driver, or use --device cpu";
        case cudaErrorNoDevice:
            return "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu";
        case cudaErrorDevicesUnavailable:
            return "the GPU is in exclusive or prohibited compute mode, or its MPS server refuses new "
                   "clients: check nvidia-smi -q";
        case cudaErrorNoKernelImageForDevice:
            return "this build holds no code for this GPU: configure with CMAKE_CUDA_ARCHITECTURES for it, "
                   "and build again";
        case cudaErrorInitializationError:
            return "CUDA can't be used in a child forked from a process that used it: spawn with exec";
        case cudaErrorInvalidResourceHandle:
            return "the owner of the memory or event has ended: restart the pipeline";
        case cudaErrorIllegalAddress:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorIllegalInstruction:
        case cudaErrorHardwareStackError:
        case cudaErrorAssert:
        case cudaErrorLaunchFailure:
            return "a kernel of this stage failed (under MPS: a kernel of any stage on this GPU); run the "
                   "stage with "
                   "prefix = \"compute-sanitizer\" to find it";
        case cudaErrorLaunchTimeout:
            return "a kernel ran longer than this GPU's watchdog allows: use a GPU without a display";
        case cudaErrorECCUncorrectable:
            return "the GPU's memory has an uncorrectable error: see nvidia-smi -q -d ECC";
        case cudaErrorMpsClientTerminated:
            return "the MPS control daemon ended this process";
        case cudaErrorSystemNotReady:
            return "the driver is not ready (on NVSwitch machines: check that the fabric manager is running)";
        case cudaErrorSystemDriverMismatch:
            return "driver and user-mode library differ: reboot, or reinstall the driver";
        default:
            return "see nvidia-smi and dmesg for the driver's own message";
    }
}

std::string message(cudaError_t status, const char* call, std::string_view device) {
    (void)cudaGetLastError();  // clears the error, so that a later check does not return it again
    return fmt::format("{}: {} failed: {} ({}): {}; {}", device, call, cudaGetErrorName(status),
                       static_cast<int>(status), cudaGetErrorString(status), advice(status));
}

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

bool is_fault(cudaError_t status) noexcept {
    const int code = static_cast<int>(status);
    switch (code) {
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorMpsClientTerminated:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorContextIsDestroyed:
            return true;
        case 226:
            return true;  // cudaErrorContained, which older toolkits do not define
        default:
            return code == cudaErrorAssert ||
                   (code >= cudaErrorHardwareStackError && code <= cudaErrorLaunchFailure);
    }
}

void fail_setup(cudaError_t status, const char* call, std::string_view device) {
    if (is_fault(status)) fail_run(status, call, device);
    throw device_error(message(status, call, device));
}

void fail_run(cudaError_t status, const char* call, std::string_view device) {
    if (is_device_loss(static_cast<int>(status))) throw device_lost_error(message(status, call, device));
    throw cuda_error(static_cast<int>(status), message(status, call, device));
}

void log_failure(cudaError_t status, const char* call) noexcept {
    (void)cudaGetLastError();
    if (status == cudaErrorCudartUnloading || is_fault(status)) return;
    try {
        log::error("{} failed while cleaning up: {}", call, cudaGetErrorName(status));
    } catch (...) {  // out of memory while formatting: nothing can be logged
    }
}

const driver_api& driver() {
    static const driver_api api = look_up();  // if this throws, the next call tries again
    return api;
}

}  // namespace carousel::device::cuda
