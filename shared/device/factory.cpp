#include "core/errors.hpp"
#include "device/backend.hpp"
#include "device/cpu/context.hpp"
#include "device/device_failure.hpp"
#if defined(CAROUSEL_WITH_CUDA)
#include "device/cuda/devices.hpp"
#endif

namespace carousel::device {

bool built_with_cuda() noexcept {
#if defined(CAROUSEL_WITH_CUDA)
    return true;
#else
    return false;
#endif
}

void bind_thread([[maybe_unused]] const context& to) {
#if defined(CAROUSEL_WITH_CUDA)
    if (to.kind() == device_kind::cuda) cuda::bind_thread(to);
#endif
}

kept_thread::kept_thread([[maybe_unused]] bool wanted) noexcept {
#if defined(CAROUSEL_WITH_CUDA)
    if (wanted) before_ = cuda::current_context();
#endif
}

kept_thread::~kept_thread() {
#if defined(CAROUSEL_WITH_CUDA)
    if (before_ != nullptr) cuda::make_current(static_cast<CUcontext>(before_));
#endif
}

std::unique_ptr<context> open(const device_id& id, unsigned cpu_threads) {
    if (id.kind == device_kind::cpu)
        return std::make_unique<cpu::context>(cpu_threads, id.uuid == simulated_uuid);
#if defined(CAROUSEL_WITH_CUDA)
    return cuda::open_context(id);
#else
    throw device_error(
        "device cuda: this build has no CUDA support; use --device cpu, or install nvcc >= 12.0 and build "
        "again");
#endif
}

}  // namespace carousel::device
