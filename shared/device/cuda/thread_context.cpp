#include "device/cuda/thread_context.hpp"

#include <dlfcn.h>

#include <atomic>

namespace carousel::device::cuda {
namespace {

/// Null if the driver is not loaded in this process. The handle from dlopen is kept open, so the driver stays
/// loaded.
template <typename Function>
Function in_driver(std::atomic<Function>& known, const char* name) noexcept {
    if (const Function found = known.load(std::memory_order_relaxed)) return found;
    void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return nullptr;
    const auto found = reinterpret_cast<Function>(::dlsym(driver, name));
    known.store(found, std::memory_order_relaxed);
    return found;
}

}  // namespace

CUcontext current_context() noexcept {
    static std::atomic<decltype(&::cuCtxGetCurrent)> known{nullptr};
    const auto ask = in_driver(known, "cuCtxGetCurrent");
    CUcontext context = nullptr;
    return ask != nullptr && ask(&context) == CUDA_SUCCESS ? context : nullptr;
}

void make_current(CUcontext context) noexcept {
    static std::atomic<decltype(&::cuCtxSetCurrent)> known{nullptr};
    if (const auto set = in_driver(known, "cuCtxSetCurrent")) (void)set(context);
}

}  // namespace carousel::device::cuda
