#pragma once
// Failures of a GPU as a whole: which CUDA errors mean that the device is gone, and a hook by which a test
// makes the device calls of a process fail from a given moment on.
//
// The hook has two sources. CAROUSEL_TEST_GPU_FAILURE names a file of one 32-bit word, the number of a CUDA
// error; 0: calls are made. Every process maps the file, so a test that writes the word makes the GPU fail
// for all processes at once, also for those that start later. fail_from_now_on() does the same for this
// process alone (`carousel inject STAGE --fault gpu-lost`). A process on the CPU is not affected, except one
// on a simulated GPU: with CAROUSEL_TEST_GPU_ON_CPU the machine has one GPU, simulated by the CPU backend.

#include <string>
#include <string_view>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::exit_code {
/// The GPU failed as a whole, or can't be used by this process: it was removed, it has an uncorrectable
/// memory error, or its driver does not answer.
inline constexpr int gpu_lost = 78;
}  // namespace carousel::exit_code

namespace carousel::device {

/// The errors that the hook injects, by the numbers of cudaError_t.
inline constexpr int error_memory = 2, error_unavailable = 46, error_no_device = 100, error_ecc = 214,
                     error_illegal_address = 700;

/// The GPU is lost, or can't be used by this process.
class device_lost_error : public error {
public:
    explicit device_lost_error(const std::string& message) : error(exit_code::gpu_lost, message) {}
};

/// True if after this error no process can be expected to use the GPU, or if this process can't.
[[nodiscard]] bool is_device_loss(int status) noexcept;

/// The number of the CUDA error with which each device call of this process fails; 0: calls are made. One
/// load unless a hook is set. Any thread.
[[nodiscard]] int injected_failure() noexcept;
void fail_from_now_on(int status) noexcept;

/// uuid of the simulated GPU.
inline constexpr std::string_view simulated_uuid = "51000000000000000000000000000000";
/// True if CAROUSEL_TEST_GPU_ON_CPU is set.
[[nodiscard]] bool has_simulated_gpu() noexcept;
/// Throws what a call to a GPU would throw that fails with the injected error: device_error, cuda_error or
/// device_lost_error. `call`: what was tried. `is_setup`: the process is being set up.
void throw_injected_failure(const char* call, bool is_setup);

}  // namespace carousel::device
