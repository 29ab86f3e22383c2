#include "alloc/nvml_memory.hpp"

#include <dlfcn.h>

namespace carousel {
namespace {

// As nvml.h has them since its first version; the header is not in every toolkit.
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

/// "GPU-8-4-4-4-12", as the library names a GPU.
std::string nvml_name(const std::string& digits) {
    std::string name = "GPU-";
    for (std::size_t k = 0; k < digits.size(); ++k) {
        if (k == 8 || k == 12 || k == 16 || k == 20) name += '-';
        name += digits[k];
    }
    return name;
}

}  // namespace

std::optional<u64> nvml_free_bytes(const std::string& uuid) noexcept {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::nullopt;
    const auto init = symbol<init_call>(library, "nvmlInit_v2");
    const auto shut_down = symbol<init_call>(library, "nvmlShutdown");
    const auto by_uuid = symbol<by_uuid_call>(library, "nvmlDeviceGetHandleByUUID");
    const auto memory = symbol<memory_call>(library, "nvmlDeviceGetMemoryInfo");
    std::optional<u64> out;
    if (init != nullptr && shut_down != nullptr && by_uuid != nullptr && memory != nullptr && init() == 0) {
        void* gpu = nullptr;
        memory_info info{};
        if (by_uuid(nvml_name(uuid).c_str(), &gpu) == 0 && memory(gpu, &info) == 0) out = info.free;
        (void)shut_down();
    }
    ::dlclose(library);
    return out;
}

}  // namespace carousel
