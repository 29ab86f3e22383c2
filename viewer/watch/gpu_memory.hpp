#pragma once
// How much GPU memory each process holds, as the driver's management library (NVML) counts it. The library is
// looked for at run time: without it nothing is known. In a container the driver may name processes by
// numbers that mean nothing inside it, or none. One thread an object; a query takes some milliseconds, so it
// is no thing for the window's thread.

#include <map>

#include "core/types.hpp"

namespace carousel::viewer {

class gpu_memory {
public:
    gpu_memory();
    ~gpu_memory();
    gpu_memory(const gpu_memory&) = delete;
    gpu_memory& operator=(const gpu_memory&) = delete;

    /// Bytes by pid, over all GPUs; empty when it can't be known.
    [[nodiscard]] std::map<u32, u64> by_pid() const;

private:
    void* library_ = nullptr;
};

}  // namespace carousel::viewer
