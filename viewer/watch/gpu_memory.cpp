#include "viewer/watch/gpu_memory.hpp"

#include <dlfcn.h>

#include <array>

namespace carousel::viewer {
namespace {

// NVML's stable C interface: version 2 of this structure, which the functions with _v2 and _v3 fill.
struct process_info {
    unsigned pid;
    unsigned long long bytes;  // all ones: not available
    unsigned gpu_instance, compute_instance;
};
constexpr int ok = 0;
using plain_call = int (*)();
using count_call = int (*)(unsigned*);
using device_call = int (*)(unsigned, void**);
using processes_call = int (*)(void*, unsigned*, process_info*);

template <typename F>
F find(void* library, const char* name) {
    return reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

gpu_memory::gpu_memory() {
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    const auto init = find<plain_call>(library_, "nvmlInit_v2");
    if (init != nullptr && init() == ok) return;
    ::dlclose(library_);
    library_ = nullptr;
}

gpu_memory::~gpu_memory() {
    if (library_ == nullptr) return;
    if (const auto shutdown = find<plain_call>(library_, "nvmlShutdown"); shutdown != nullptr)
        (void)shutdown();
    ::dlclose(library_);
}

std::map<u32, u64> gpu_memory::by_pid() const {
    std::map<u32, u64> out;
    if (library_ == nullptr) return out;
    const auto count = find<count_call>(library_, "nvmlDeviceGetCount_v2");
    const auto device = find<device_call>(library_, "nvmlDeviceGetHandleByIndex_v2");
    auto processes = find<processes_call>(library_, "nvmlDeviceGetComputeRunningProcesses_v3");
    if (processes == nullptr)
        processes = find<processes_call>(library_, "nvmlDeviceGetComputeRunningProcesses_v2");
    unsigned devices = 0;
    if (count == nullptr || device == nullptr || processes == nullptr || count(&devices) != ok) return out;
    for (unsigned k = 0; k < devices && k < 64; ++k) {
        void* handle = nullptr;
        std::array<process_info, 256> found{};
        unsigned n = found.size();
        if (device(k, &handle) != ok || processes(handle, &n, found.data()) != ok) continue;
        for (unsigned i = 0; i < n && i < found.size(); ++i)
            if (found[i].bytes != ~0ULL) out[found[i].pid] += found[i].bytes;
    }
    return out;
}

}  // namespace carousel::viewer
