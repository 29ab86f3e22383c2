#include "bench/ipc/cuda/gpu_info.hpp"

#include <dlfcn.h>

#include <cstring>

#include "bench/ipc/cuda/gpu_parts.hpp"

namespace carousel::bench::gpu {
namespace {

struct shared_info {
    u32 devices, peers;
    char why[200], name[200];
    f64 sm_mhz, memory_mhz, memory_gb_s, pcie_gb_s, nvlink_gb_s;
};

/// Looks up NVML's functions by name: its library comes with the driver.
struct nvml {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    void* device = nullptr;
    template <class... Args>
    bool call(const char* name, Args... args) const {
        using function = int (*)(Args...);
        const auto f = library == nullptr ? nullptr : reinterpret_cast<function>(::dlsym(library, name));
        return f != nullptr && f(args...) == 0;
    }
    explicit nvml(const char* bus_id) {
        if (call("nvmlInit_v2")) (void)call("nvmlDeviceGetHandleByPciBusId_v2", bus_id, &device);
    }
    [[nodiscard]] unsigned mhz(int of) const {
        unsigned value = 0;
        return device != nullptr && call("nvmlDeviceGetClockInfo", device, of, &value) ? value : 0;
    }
};

/// Returns GB/s of one PCIe lane in one direction, after its line code.
f64 lane_gb_s(unsigned generation) {
    constexpr f64 all[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    return generation < std::size(all) ? all[generation] : 0;
}

void query_first_gpu(shared_info& t) {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
    std::string(p.name).copy(t.name, sizeof t.name - 1);
    int khz = 0, bits = 0;
    if (cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, 0) == cudaSuccess &&
        cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, 0) == cudaSuccess)
        t.memory_gb_s = 2.0 * khz * 1000 * bits / 8 / 1e9;  // two words per clock
    char bus_id[64] = {};
    check(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0), "cudaDeviceGetPCIBusId");
    check(cudaFree(nullptr), "a context");  // so that the clocks are read while the GPU is active
    const nvml n(bus_id);
    constexpr int sm_clock = 1, memory_clock = 2;
    t.sm_mhz = n.mhz(sm_clock), t.memory_mhz = n.mhz(memory_clock);
    unsigned generation = 0, width = 0;
    if (n.device != nullptr && n.call("nvmlDeviceGetMaxPcieLinkGeneration", n.device, &generation) &&
        n.call("nvmlDeviceGetMaxPcieLinkWidth", n.device, &width))
        t.pcie_gb_s = lane_gb_s(generation) * width;
    u32 links = 0;
    for (unsigned link = 0, active = 0; link < 18; ++link)
        links +=
            n.device != nullptr && n.call("nvmlDeviceGetNvLinkState", n.device, link, &active) && active == 1;
    constexpr f64 link_gb_s = 25;  // one NVLink of the fourth generation, in one direction
    t.nvlink_gb_s = p.major == 9 ? links * link_gb_s : 0;
}

}  // namespace

gpu_info query_gpus() {
    const shared_with_children<shared_info> t;
    const bool well = end_child(start_child([&] {
        std::string why;
        t->devices = devices(why);
        why.copy(t->why, sizeof t->why - 1);
        if (t->devices == 0) return 0;
        try {
            query_first_gpu(*t);
        } catch (const error& e) {
            t->devices = 0;
            std::string(e.what()).copy(t->why, sizeof t->why - 1);
        }
        int there = 0, back = 0;
        if (t->devices > 1 && cudaDeviceCanAccessPeer(&there, 0, 1) == cudaSuccess &&
            cudaDeviceCanAccessPeer(&back, 1, 0) == cudaSuccess)
            t->peers = there == 1 && back == 1;
        return 0;
    }));
    gpu_info i;
    i.devices = well ? t->devices : 0;
    i.why = well ? t->why : "the driver ended a process that asked for a GPU";
    i.name = t->name, i.peers = t->peers != 0;
    i.sm_mhz = t->sm_mhz, i.memory_mhz = t->memory_mhz;
    i.memory_gb_s = t->memory_gb_s, i.pcie_gb_s = t->pcie_gb_s, i.nvlink_gb_s = t->nvlink_gb_s;
    return i;
}

void record_gpu(const gpu_info& info, bool before, gpu_result& r) {
    if (info.devices == 0) return;
    r.name = info.name, r.memory_mhz = info.memory_mhz;
    if (!before || r.sm_mhz_before == 0) (before ? r.sm_mhz_before : r.sm_mhz_after) = info.sm_mhz;
    r.memory_floor = info.memory_gb_s, r.pcie_floor = info.pcie_gb_s, r.nvlink_floor = info.nvlink_gb_s;
}

}  // namespace carousel::bench::gpu
