#pragma once
// GPU memory per process, as counted by the driver's management library (NVML). The library is loaded at run
// time; without it no value is known. In a container the driver may report pids of another namespace, or
// none. Use each object from one thread only. A query takes some milliseconds, so it must not be called in
// the window's thread.

#include <map>

#include "core/types.hpp"

namespace carousel::viewer {

class gpu_memory {
public:
    gpu_memory();
    ~gpu_memory();
    gpu_memory(const gpu_memory&) = delete;
    gpu_memory& operator=(const gpu_memory&) = delete;

    /// Bytes by pid, over all GPUs; empty if unknown.
    [[nodiscard]] std::map<u32, u64> by_pid() const;

private:
    void* library_ = nullptr;
};

}  // namespace carousel::viewer
