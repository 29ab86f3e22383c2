#include "alloc/nvml_memory.hpp"

#include <dlfcn.h>

namespace carousel {
namespace {

// As declared in nvml.h since its first version; the header is not in every toolkit.
struct memory_info {
    unsigned long long total, free, used;
};
using init_call = int (*)();
using by_uuid_call = int (*)(const char* uuid, void** device);
using memory_call = int (*)(void* device, memory_info* out);

template <typename Call>
Call symbol(void* library, const char* name) {
    return reinterpret_cast<Call>(::dlsym(library, name));
}

/// "GPU-8-4-4-4-12", the library's form of a GPU's UUID.
std::string nvml_name(const std::string& digits) {
    std::string name = "GPU-";
    for (std::size_t k = 0; k < digits.size(); ++k) {
        if (k == 8 || k == 12 || k == 16 || k == 20) name += '-';
        name += digits[k];
    }
    return name;
}

/// Loaded and initialised once for all GPUs, which takes tens of milliseconds; remains until the process
/// ends.
struct nvml {
    by_uuid_call by_uuid = nullptr;
    memory_call memory = nullptr;
    bool there = false;

    nvml() noexcept {
        void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        const auto init = symbol<init_call>(library, "nvmlInit_v2");
        by_uuid = symbol<by_uuid_call>(library, "nvmlDeviceGetHandleByUUID");
        memory = symbol<memory_call>(library, "nvmlDeviceGetMemoryInfo");
        there = init != nullptr && by_uuid != nullptr && memory != nullptr && init() == 0;
    }
};

}  // namespace

std::optional<u64> nvml_free_bytes(const std::string& uuid) {
    static const nvml library;
    void* gpu = nullptr;
    memory_info info{};
    if (!library.there || library.by_uuid(nvml_name(uuid).c_str(), &gpu) != 0 ||
        library.memory(gpu, &info) != 0)
        return std::nullopt;
    return info.free;
}

}  // namespace carousel
