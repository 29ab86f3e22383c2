#include "device/cuda/devices.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

#include "core/errors.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/thread_context.hpp"

namespace carousel::device::cuda {
namespace {

/// The driver loads all kernels when a context is created, unless the user's environment specifies otherwise:
/// a lazy load at the first launch synchronises the context. The variable is set when the program (or the
/// module that contains this file) is loaded, because later other threads may be reading the environment.
[[maybe_unused]] const bool modules_load_eagerly = ::setenv("CUDA_MODULE_LOADING", "EAGER", 0) == 0;

/// The context that this thread has made current.
struct binding {
    int ordinal = -1;
    CUcontext context = nullptr;
};
thread_local binding bound;

// A library in this process may in the meantime have made another context current, even another one of this
// GPU.
bool is_current(int ordinal) noexcept {
    return bound.ordinal == ordinal && bound.context != nullptr && bound.context == current_context();
}

std::string hex(const cudaUUID_t& uuid) {
    std::string text;
    for (const char byte : uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
}

std::string plain_uuid(std::string_view text) {
    if (text.substr(0, 4) == "GPU-" || text.substr(0, 4) == "MIG-") text.remove_prefix(4);
    std::string plain;
    for (const char c : text) {
        if (c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return plain;
}

[[noreturn]] void refuse(cudaError_t status) {
    (void)cudaGetLastError();
    int driver_version = 0, runtime_version = 0;
    (void)cudaDriverGetVersion(&driver_version);
    (void)cudaRuntimeGetVersion(&runtime_version);
    if (driver_version == 0) {
        throw device_error(
            "CUDA: no NVIDIA driver is installed on this machine (libcuda.so.1 is missing or doesn't load); "
            "install one, or use --device cpu");
    }
    if (status == cudaErrorInsufficientDriver) {
        throw device_error(
            fmt::format("CUDA: the NVIDIA driver is too old: it supports CUDA {}, this program was built "
                        "with {}; install a newer driver, build with an older CUDA, or use --device cpu",
                        version_text(driver_version), version_text(runtime_version)));
    }
    if (status == cudaErrorNoDevice || status == cudaSuccess) {
        const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
        throw device_error(
            fmt::format("CUDA: the driver sees no GPU{}; check nvidia-smi, or use --device cpu",
                        visible != nullptr ? fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible) : ""));
    }
    fail_setup(status, "cudaGetDeviceCount", "CUDA");
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string gpu::label() const { return fmt::format("{} (cuda:{})", name, ordinal); }

void gpu::bind() const {
    if (is_current(ordinal)) return;
    CAROUSEL_CUDA_RUN(label(), cudaSetDevice(ordinal));
    bound = {ordinal, current_context()};
}

bool gpu::try_bind() const noexcept {
    if (is_current(ordinal)) return true;
    if (cudaSetDevice(ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    bound = {ordinal, current_context()};
    return true;
}

int gpu::attribute(int number) const {
    int value = 0;
    const CUresult result =
        driver().device_get_attribute(&value, static_cast<CUdevice_attribute>(number), ordinal);
    return result == CUDA_SUCCESS ? value : 0;
}

std::vector<gpu> list_gpus() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) refuse(status);
    std::vector<gpu> all;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp p{};
        CAROUSEL_CUDA_SETUP(fmt::format("cuda:{}", i), cudaGetDeviceProperties(&p, i));
        gpu g;
        g.ordinal = i;
        g.uuid = hex(p.uuid);
        g.name = p.name;
        g.major = p.major;
        g.minor = p.minor;
        g.total_bytes = p.totalGlobalMem;
        g.unified_addressing = p.unifiedAddressing != 0;
        g.integrated = p.integrated != 0;
        all.push_back(std::move(g));
    }
    return all;
}

gpu find_gpu(const device_id& id) {
    const std::vector<gpu> all = list_gpus();
    const std::string wanted = plain_uuid(id.uuid);
    std::string there;
    for (const gpu& g : all) {
        if (wanted.empty() ? g.ordinal == id.ordinal : g.uuid == wanted) return g;
        there += fmt::format("{}{} uuid {}", there.empty() ? "" : ", ", g.label(), g.uuid);
    }
    std::string asked = id.ordinal >= 0 ? fmt::format("cuda:{}", id.ordinal) : std::string();
    if (!wanted.empty()) asked += fmt::format("{}with uuid {}", asked.empty() ? "" : " ", wanted);
    throw device_error(fmt::format(
        "CUDA: this process sees no GPU {}; it sees {}; check CUDA_VISIBLE_DEVICES and the device in the "
        "pipeline file",
        asked, there));
}

void open_gpu(const gpu& on) {
    CAROUSEL_CUDA_SETUP(
        on.label(), cudaInitDevice(on.ordinal, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
    CAROUSEL_CUDA_SETUP(on.label(), cudaSetDevice(on.ordinal));
    bound = {on.ordinal, current_context()};
    unsigned flags = 0;
    CAROUSEL_CUDA_SETUP(on.label(), cudaGetDeviceFlags(&flags));
    // Other code in this process created the context first.
    if ((flags & cudaDeviceScheduleMask) != cudaDeviceScheduleBlockingSync) {
        CAROUSEL_CUDA_SETUP(on.label(), cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    }
}

bool has_peer_access(const gpu& from, const gpu& to, std::string& why) {
    if (from.ordinal == to.ordinal) return true;
    int can = 0;
    CAROUSEL_CUDA_SETUP(from.label(), cudaDeviceCanAccessPeer(&can, from.ordinal, to.ordinal));
    if (can == 0) {
        why = fmt::format(
            "{} has no peer access to {} (no NVLink, or PCIe on different bridges); put both stages on one "
            "GPU, or one of them on the CPU",
            from.label(), to.label());
    }
    return can != 0;
}

}  // namespace carousel::device::cuda
