#pragma once
// The GPUs that this process sees, and the names by which other processes identify them. Listing creates no
// context.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"

namespace carousel::device::cuda {

struct gpu {
    int ordinal = 0;   ///< valid only in this process
    std::string uuid;  ///< 32 lower-case hex digits
    std::string name;  ///< "NVIDIA H200"
    int major = 0, minor = 0;
    u64 total_bytes = 0;
    bool unified_addressing = false, integrated = false;

    [[nodiscard]] std::string label() const;  ///< "NVIDIA H200 (cuda:0)"
    /// Makes this GPU the calling thread's current GPU. Without this call, CUDA calls of a new thread would
    /// open a context on GPU 0. Throws cuda_error.
    void bind() const;
    [[nodiscard]] bool try_bind() const noexcept;
    /// Returns the value of a driver attribute; 0 if the attribute is unknown.
    [[nodiscard]] int attribute(int number) const;
};

/// Returns all GPUs that this process sees. Throws device_error with the reason and a remedy: no driver,
/// driver too old, no GPU.
[[nodiscard]] std::vector<gpu> list_gpus();

/// Returns the GPU with id.uuid ("GPU-..." and dashes are accepted); if id.uuid is "", the GPU with
/// id.ordinal. Throws device_error that lists the GPUs present.
[[nodiscard]] gpu find_gpu(const device_id& id);

/// Creates the GPU's primary context (in which waits sleep instead of spinning) and binds the calling thread.
/// Throws device_error.
void open_gpu(const gpu& on);

/// Returns true if the GPU `from` can read and write memory of the GPU `to`. If it cannot, sets `why` to the
/// reason, for an error message.
[[nodiscard]] bool has_peer_access(const gpu& from, const gpu& to, std::string& why);

/// "13.0" from 13000.
[[nodiscard]] std::string version_text(int version);

// One GPU as a device of this process.

/// Opens the GPU `id`: sets module loading, then blocking sync, then creates the context (CUDA requires this
/// order), and runs the status-word kernel once. Throws device_error.
[[nodiscard]] std::unique_ptr<device::context> open_context(const device_id& id);

/// `to` must have been returned by open_context(). Throws cuda_error.
void bind_thread(const device::context& to);

// The calling thread's current context. Queries the driver only if it is already loaded in this process;
// never loads or initialises it, so that a program can still fork later.

/// Returns null if the thread has no context, or if the driver is not loaded in this process.
[[nodiscard]] CUcontext current_context() noexcept;
/// `context` must have been returned by current_context(). No effect if the context has been destroyed in the
/// meantime.
void make_current(CUcontext context) noexcept;

}  // namespace carousel::device::cuda
