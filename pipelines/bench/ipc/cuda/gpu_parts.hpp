#pragma once
// What the GPU's tables share: errors that a child can tell, memory of each kind as its maker gives it away
// and as another process opens it, and streams that are held until all is enqueued.
//
// Only children include CUDA's state: nothing here is called in the process that starts them.

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "bench/ipc/workers.hpp"
#include "core/types.hpp"

namespace carousel::bench::gpu {

/// Throws cuda_error, with what was tried.
void check(cudaError_t e, const char* what);
void check(CUresult e, const char* what);
[[nodiscard]] void* driver_symbol(const char* name);
/// A function of the driver by its name: a program that names libcuda would not start without a driver.
template <class F>
[[nodiscard]] F driver(const char* name) {
    return reinterpret_cast<F>(driver_symbol(name));
}

enum class kind : u32 { legacy, vmm, pool, memfd };
inline constexpr u32 kinds = 4;
[[nodiscard]] const char* name_of(kind k) noexcept;

/// What goes to whoever opens memory: legacy and pool have bytes, all but legacy a descriptor.
struct ticket {
    cudaIpcMemHandle_t legacy;
    cudaMemPoolPtrExportData pooled;
};
/// Makes memory on the current device; `fd` (-1: none) goes to the other process by a socket. Throws
/// cuda_error where this GPU can't.
[[nodiscard]] void* make(kind k, u64 bytes, ticket& t, int& fd);

/// Memory of another process, and what it took in us to have it and to let it go.
struct opened {
    void* at = nullptr;
    f64 open_us = 0, map_us = 0;
    CUmemGenericAllocationHandle vmm = 0;
    cudaMemPool_t pool = nullptr;
    void* host = nullptr;  ///< of memfd: its address for the CPU
};
[[nodiscard]] opened open(kind k, u64 bytes, const ticket& t, int fd);
/// Returns us.
f64 close(kind k, u64 bytes, opened& o);

/// Holds streams until release(): a stream waits for a word that the CPU writes. What is enqueued meanwhile
/// runs without the host's part in it.
class gate {
public:
    gate();
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    void hold(cudaStream_t s);
    void release();

private:
    unsigned* word_ = nullptr;  ///< page-locked, mapped
    CUdeviceptr seen_ = 0;
    unsigned number_ = 0;
};

/// GPUs here, and why there is none. In a child.
[[nodiscard]] u32 devices(std::string& why);

}  // namespace carousel::bench::gpu
