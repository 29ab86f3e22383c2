#pragma once
// Sets the calling thread's current GPU, for code that shares the thread with other users of CUDA.

#include "device/backend.hpp"

namespace carousel::device {

/// Makes the context's GPU the calling thread's current GPU. No effect on the CPU. Throws cuda_error.
void bind_thread(const context& to);

/// Restores the calling thread's current CUDA context in the destructor, whichever context was made current
/// by calls in between: a program whose thread is used may work on another GPU. If the thread had no context,
/// it keeps the context of the call; otherwise its own next launch would go to GPU 0. No effect if the driver
/// is not loaded in this process.
class kept_thread {
public:
    /// `wanted` false: no effect, for a call that does not use a GPU.
    explicit kept_thread(bool wanted = true) noexcept;
    ~kept_thread();
    kept_thread(const kept_thread&) = delete;
    kept_thread& operator=(const kept_thread&) = delete;

private:
    [[maybe_unused]] void* before_ = nullptr;  ///< null: nothing to restore
};

}  // namespace carousel::device
