#pragma once
// Parts that the GPU tables share: errors that a child can report, functions that export and open memory of
// each kind, and streams that are held until all work is enqueued. Only child processes may call these
// functions, because the process that starts the children never touches CUDA.

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "bench/ipc/result.hpp"
#include "bench/ipc/workers.hpp"
#include "core/types.hpp"

namespace carousel::bench::gpu {

/// Throws cuda_error that names `what` if `e` is an error.
void check(cudaError_t e, const char* what);
void check(CUresult e, const char* what);
[[nodiscard]] void* driver_symbol(const char* name);
/// Looks up a driver function by name, because a program that is linked to libcuda does not start on a
/// machine without a driver.
template <class F>
[[nodiscard]] F driver(const char* name) {
    return reinterpret_cast<F>(driver_symbol(name));
}

enum class kind : u32 { legacy, vmm, pool, memfd };
inline constexpr u32 kinds = 4;
[[nodiscard]] const char* name_of(kind k) noexcept;

/// The bytes that an exporter sends to the process that opens the memory. Only the kinds legacy and pool use
/// them; all kinds except legacy also need a descriptor.
struct ticket {
    cudaIpcMemHandle_t legacy;
    cudaMemPoolPtrExportData pooled;
};
/// Makes memory on the current device; `fd` (-1: none) must be sent to the other process over a socket.
/// Throws cuda_error if this GPU does not support the kind.
[[nodiscard]] void* make(kind k, u64 bytes, ticket& t, int& fd);

/// Memory of another process, and the time in us to open and map it.
struct opened {
    void* at = nullptr;
    f64 open_us = 0, map_us = 0;
    CUmemGenericAllocationHandle vmm = 0;
    cudaMemPool_t pool = nullptr;
    void* host = nullptr;  ///< for memfd: its address on the CPU
};
[[nodiscard]] opened open(kind k, u64 bytes, const ticket& t, int fd);
/// Closes the memory; returns the time in us.
f64 close(kind k, u64 bytes, opened& o);

/// Holds streams until release(): a held stream waits for a word that the CPU writes. Work that is enqueued
/// while a stream is held runs after release(), without waiting for the host.
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

/// Returns the number of GPUs here, or 0 and the reason. Call in a child only.
[[nodiscard]] u32 devices(std::string& why);

// Properties of the first GPU, queried by a child process: its name, its current clocks, and the highest
// rates of its memory and links.

struct gpu_info {
    u32 devices = 0;
    std::string why, name;  ///< why: the reason if there is no GPU
    bool peers = false;     ///< the first two GPUs can access each other's memory
    f64 sm_mhz = 0, memory_mhz = 0;
    f64 memory_gb_s = 0, pcie_gb_s = 0, nvlink_gb_s = 0;
};
[[nodiscard]] gpu_info query_gpus();
void record_gpu(const gpu_info& info, bool before, gpu_result& r);

}  // namespace carousel::bench::gpu
