#pragma once
// Which GPU is the calling thread's current one, for code that shares the thread with others who call CUDA.

#include "device/backend.hpp"

namespace carousel::device {

/// Makes the context's GPU the calling thread's current one. Nothing on the CPU. Throws cuda_error.
void bind_thread(const context& to);

/// The calling thread's current CUDA context is that again when this goes, whichever a call has made current
/// meanwhile: a program that lends its thread may work on another GPU. A thread that had none keeps the
/// call's, or its own next launch would go to GPU 0. Nothing where nobody in this process has loaded the
/// driver.
class kept_thread {
public:
    /// `wanted` false: it does nothing, as for a call that comes to no GPU.
    explicit kept_thread(bool wanted = true) noexcept;
    ~kept_thread();
    kept_thread(const kept_thread&) = delete;
    kept_thread& operator=(const kept_thread&) = delete;

private:
    [[maybe_unused]] void* before_ = nullptr;  ///< null: there is nothing to go back to
};

}  // namespace carousel::device
