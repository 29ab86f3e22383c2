// carousel-probe: prints what CUDA offers on this machine, as one JSON object on stdout:
//   {built_with_cuda, driver_version, runtime_version, devices: [{ordinal, uuid, name, total_bytes,
//   free_bytes, compute, vmm_posix_fd, ipc_events, ipc_memory, stream_mem_ops, read_only_host,
//   same_host_address, exclusive_process, peers: [ordinal, ...]}], error}
// Versions have the form "13.0", or null if there is none; error is null if at least one device can be used.
//   --quick   opens no context, because a context costs about 0.2 s and 0.5 GB of GPU memory per device;
//             free_bytes comes from the driver's management library, and is null without that library
// The exit code is 0 except for a wrong command line (2): the absence of a driver is a result, too.

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/process.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "device/device_failure.hpp"

namespace carousel {

// Free memory of a GPU, without a context on it: read from the driver's management library (NVML), if there
// is one.

namespace {

// Declarations that nvml.h has contained since its first version; they are repeated here, because the header
// is not in every toolkit.
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

/// The library is loaded and initialised once for all GPUs, which takes tens of milliseconds, and stays
/// loaded until the process ends.
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

/// Returns the free bytes of the GPU `uuid` (32 hexadecimal digits). Empty if there is no library, or if it
/// doesn't know that GPU (a MIG slice).
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

#if defined(CAROUSEL_WITH_CUDA)
#include "device/cuda/check.hpp"
#include "device/cuda/devices.hpp"
#endif

namespace {

using nlohmann::json;
using namespace carousel;

constexpr const char* usage =
    "Usage: carousel-probe [--quick]\n"
    "\n"
    "Prints the CUDA capabilities of this machine as one JSON object: versions of driver and runtime, every "
    "GPU with its UUID, memory,\n"
    "compute capability, what it can share between processes, and its peers. `carousel run`, `up` and "
    "`doctor` use it.\n"
    "\n"
    "  --quick   opens no GPU context: free_bytes is then the value of NVML, or null (a context costs about "
    "0.2 s and "
    "0.5 GB of GPU memory\n"
    "            per device)\n"
    "  --help    this text\n"
    "\n"
    "Exit code 0, also without a driver (\"error\" is then the cause); 2 for an unknown argument.\n";

#if defined(CAROUSEL_WITH_CUDA)
namespace cuda = device::cuda;

// Driver API attributes, given by number: older toolkits have no names for some of them.
constexpr int attribute_compute_mode = 20, attribute_same_host_address = 91, attribute_read_only_host = 113,
              attribute_vmm = 102, attribute_vmm_posix_fd = 103, attribute_stream_mem_ops_64 = 122,
              attribute_ipc_event = 125;
constexpr int mode_exclusive_process = 3;  // CU_COMPUTEMODE_EXCLUSIVE_PROCESS

json free_bytes(const cuda::gpu& g) {
    std::size_t free_now = 0, total = 0;
    cuda::open_gpu(g);
    CAROUSEL_CUDA_SETUP(g.label(), cudaMemGetInfo(&free_now, &total));
    return free_now;
}

json describe(const cuda::gpu& g, const std::vector<cuda::gpu>& all, bool quick) {
    json d = {{"ordinal", g.ordinal},
              {"uuid", g.uuid},
              {"name", g.name},
              {"total_bytes", g.total_bytes},
              {"free_bytes", nullptr},
              {"compute", fmt::format("{}.{}", g.major, g.minor)},
              {"vmm_posix_fd", g.attribute(attribute_vmm) != 0 && g.attribute(attribute_vmm_posix_fd) != 0},
              {"ipc_events", g.attribute(attribute_ipc_event) != 0},
              {"ipc_memory", g.unified_addressing && !g.integrated},
              {"stream_mem_ops", g.attribute(attribute_stream_mem_ops_64) != 0},
              {"read_only_host", g.attribute(attribute_read_only_host) != 0},
              {"same_host_address", g.attribute(attribute_same_host_address) != 0},
              {"exclusive_process", g.attribute(attribute_compute_mode) == mode_exclusive_process},
              {"peers", json::array()}};
    for (const cuda::gpu& other : all) {
        std::string why;
        if (other.ordinal != g.ordinal && cuda::has_peer_access(g, other, why))
            d["peers"].push_back(other.ordinal);
    }
    if (quick) {
        if (const std::optional<u64> free_now = nvml_free_bytes(g.uuid)) d["free_bytes"] = *free_now;
    } else {
        try {
            d["free_bytes"] = free_bytes(g);
        } catch (const error& e) {
            d["error"] = e.what();  // the GPU is visible, but unusable (because of its compute mode or MPS)
        }
    }
    return d;
}

void fill(json& answer, bool quick) {
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version != 0)
        answer["driver_version"] = cuda::version_text(version);
    if (cudaRuntimeGetVersion(&version) == cudaSuccess)
        answer["runtime_version"] = cuda::version_text(version);
    const std::vector<cuda::gpu> all = cuda::list_gpus();
    for (const cuda::gpu& g : all) answer["devices"].push_back(describe(g, all, quick));
}
#else
void fill(json&, bool) {
    (void)device::open({device::device_kind::cuda, "", 0});
}  // throws: built without CUDA
#endif

/// For tests: see device_failure.hpp.
void fill_simulated(json& answer) {
    const std::string uuid(device::simulated_uuid);
    (void)device::open({device::device_kind::cpu, uuid, 0}, 1);
    answer["devices"].push_back({{"ordinal", 0},
                                 {"uuid", uuid},
                                 {"name", "simulated GPU"},
                                 {"read_only_host", true},
                                 {"same_host_address", true}});
}

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
    if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
        std::printf("%s", usage);
        return after_output(exit_code::ok);
    }
    if (argc > 1 && !quick) {
        std::fprintf(
            stderr,
            "error: carousel-probe: unknown arguments; usage: carousel-probe [--quick] (see --help)\n");
        return exit_code::usage;
    }
    json answer = {{"built_with_cuda", device::built_with_cuda()},
                   {"driver_version", nullptr},
                   {"runtime_version", nullptr},
                   {"devices", json::array()},
                   {"error", nullptr}};
    try {
        if (device::has_simulated_gpu())
            fill_simulated(answer);
        else
            fill(answer, quick);
    } catch (const std::exception& e) {
        answer["error"] = e.what();
    }
    std::printf("%s\n", answer.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    return after_output(exit_code::ok);
}
