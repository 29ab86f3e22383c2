#include "bench/ipc/cuda/gpu_parts.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel::bench::gpu {
namespace {

f64 us_since(u64 begin) { return static_cast<f64>(now_ns() - begin) / 1000; }
int device() {
    int d = 0;
    check(cudaGetDevice(&d), "cudaGetDevice");
    return d;
}
void* to_pointer(CUdeviceptr at) {
    return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): the driver's type is an integer
}
/// Converts a descriptor to the form that the import functions take.
void* handle_of(int fd) {
    return reinterpret_cast<void*>(static_cast<intptr_t>(fd));  // NOLINT(performance-no-int-to-ptr)
}
void* map_vmm(CUmemGenericAllocationHandle h, u64 bytes) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device();
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at, bytes, 0, 0, 0),
          "cuMemAddressReserve");
    check(driver<decltype(&cuMemMap)>("cuMemMap")(at, bytes, 0, h, 0), "cuMemMap");
    check(driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at, bytes, &access, 1), "cuMemSetAccess");
    return to_pointer(at);
}
void* make_vmm(u64 bytes, int& fd) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle h = 0;
    check(driver<decltype(&cuMemCreate)>("cuMemCreate")(&h, bytes, &prop, 0), "cuMemCreate");
    check(driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
              &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
    return map_vmm(h, bytes);
}
void* make_pooled(u64 bytes, ticket& t, int& fd) {
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device();
    cudaMemPool_t pool = nullptr;
    void* at = nullptr;
    check(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate with a shareable handle");
    check(cudaMallocFromPoolAsync(&at, bytes, pool, nullptr), "cudaMallocFromPoolAsync");
    check(cudaStreamSynchronize(nullptr), "cudaMallocFromPoolAsync");
    check(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0),
          "cudaMemPoolExportToShareableHandle");
    check(cudaMemPoolExportPointer(&t.pooled, at), "cudaMemPoolExportPointer");
    return at;
}
void* map_host(u64 bytes, int fd) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) throw shm_error("a memfd for the bench can't be mapped: " + errno_text(errno));
    return at;
}
void* registered(void* host, u64 bytes) {
    void* at = nullptr;
    check(cudaHostRegister(host, bytes, cudaHostRegisterMapped), "cudaHostRegister of a memfd");
    check(cudaHostGetDevicePointer(&at, host, 0), "cudaHostGetDevicePointer");
    return at;
}

struct shared_info {
    u32 devices, peers;
    char why[200], name[200];
    f64 sm_mhz, memory_mhz, memory_gb_s, pcie_gb_s, nvlink_gb_s;
};

/// Looks up NVML's functions by name, because NVML's library comes with the driver.
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

/// Returns the data rate of one PCIe lane in one direction, in GB/s, without the overhead of the line code.
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
    check(cudaFree(nullptr), "a context");  // keeps the GPU active while the clocks are read
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

void check(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    (void)cudaGetLastError();
    throw cuda_error(static_cast<int>(e), fmt::format("{}: {}", what, cudaGetErrorString(e)));
}
void check(CUresult e, const char* what) {
    if (e != CUDA_SUCCESS)
        throw cuda_error(static_cast<int>(e), fmt::format("{}: error {}", what, static_cast<int>(e)));
}
void* driver_symbol(const char* name) {
    static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
    void* const at = library == nullptr ? nullptr : ::dlsym(library, name);
    if (at == nullptr) throw device_error(fmt::format("{}: this driver has no such function", name));
    return at;
}

const char* name_of(kind k) noexcept {
    switch (k) {
        case kind::legacy:
            return "legacy handle";
        case kind::vmm:
            return "VMM by descriptor";
        case kind::pool:
            return "cudaMallocAsync pool";
        case kind::memfd:
            return "memfd, registered";
    }
    return "";
}

void* make(kind k, u64 bytes, ticket& t, int& fd) {
    void* at = nullptr;
    fd = -1;
    switch (k) {
        case kind::legacy:
            check(cudaMalloc(&at, bytes), "cudaMalloc");
            check(cudaIpcGetMemHandle(&t.legacy, at), "cudaIpcGetMemHandle");
            return at;
        case kind::vmm:
            return make_vmm(bytes, fd);
        case kind::pool:
            return make_pooled(bytes, t, fd);
        case kind::memfd:
            fd = ::memfd_create("carousel-bench", MFD_CLOEXEC);
            if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
                throw shm_error("a memfd for the bench: " + errno_text(errno));
            return registered(map_host(bytes, fd), bytes);
    }
    return at;
}

opened open(kind k, u64 bytes, const ticket& t, int fd) {
    opened o;
    const u64 begin = now_ns();
    u64 got = 0;  // time at which the handle had been opened, before its memory was mapped
    const auto is_open = [&] { o.open_us = static_cast<f64>((got = now_ns()) - begin) / 1000; };
    switch (k) {
        case kind::legacy:
            check(cudaIpcOpenMemHandle(&o.at, t.legacy, cudaIpcMemLazyEnablePeerAccess),
                  "cudaIpcOpenMemHandle");
            is_open();
            break;
        case kind::vmm:
            check(driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
                      &o.vmm, handle_of(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                  "cuMemImportFromShareableHandle");
            is_open();
            o.at = map_vmm(o.vmm, bytes);
            break;
        case kind::pool: {
            check(cudaMemPoolImportFromShareableHandle(&o.pool, handle_of(fd),
                                                       cudaMemHandleTypePosixFileDescriptor, 0),
                  "cudaMemPoolImportFromShareableHandle");
            cudaMemAccessDesc access{};
            access.location.type = cudaMemLocationTypeDevice;
            access.location.id = device();
            access.flags = cudaMemAccessFlagsProtReadWrite;
            check(cudaMemPoolSetAccess(o.pool, &access, 1), "cudaMemPoolSetAccess");
            is_open();
            cudaMemPoolPtrExportData data = t.pooled;
            check(cudaMemPoolImportPointer(&o.at, o.pool, &data), "cudaMemPoolImportPointer");
            break;
        }
        case kind::memfd:
            o.host = map_host(bytes, fd);
            is_open();
            o.at = registered(o.host, bytes);
            break;
    }
    o.map_us = us_since(got);
    return o;
}

f64 close(kind k, u64 bytes, opened& o) {
    const u64 begin = now_ns();
    switch (k) {
        case kind::legacy:
            check(cudaIpcCloseMemHandle(o.at), "cudaIpcCloseMemHandle");
            break;
        case kind::vmm: {
            const auto at = reinterpret_cast<CUdeviceptr>(o.at);
            check(driver<decltype(&cuMemUnmap)>("cuMemUnmap")(at, bytes), "cuMemUnmap");
            check(driver<decltype(&cuMemAddressFree)>("cuMemAddressFree")(at, bytes), "cuMemAddressFree");
            check(driver<decltype(&cuMemRelease)>("cuMemRelease")(o.vmm), "cuMemRelease");
            break;
        }
        case kind::pool:
            check(cudaFree(o.at), "cudaFree of a pool's pointer");
            check(cudaMemPoolDestroy(o.pool), "cudaMemPoolDestroy");
            break;
        case kind::memfd:
            check(cudaHostUnregister(o.host), "cudaHostUnregister");
            ::munmap(o.host, bytes);
            break;
    }
    return us_since(begin);
}

gate::gate() {
    check(cudaHostAlloc(reinterpret_cast<void**>(&word_), sizeof *word_, cudaHostAllocMapped),
          "cudaHostAlloc");
    *word_ = 0;
    void* seen = nullptr;
    check(cudaHostGetDevicePointer(&seen, word_, 0), "cudaHostGetDevicePointer");
    seen_ = reinterpret_cast<CUdeviceptr>(seen);
}
gate::~gate() {
    release();  // releases all waiting streams
    (void)cudaDeviceSynchronize();
    (void)cudaFreeHost(word_);
}
void gate::hold(cudaStream_t s) {
    check(driver<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32_v2")(s, seen_, number_ + 1,
                                                                           CU_STREAM_WAIT_VALUE_GEQ),
          "cuStreamWaitValue32");
}
void gate::release() {
    ++number_;
    std::atomic_ref(*word_).store(number_, std::memory_order_release);
}

u32 devices(std::string& why) {
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess) why = fmt::format("no GPU: {}", cudaGetErrorString(e));
    return e == cudaSuccess ? static_cast<u32>(n) : 0;
}

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
