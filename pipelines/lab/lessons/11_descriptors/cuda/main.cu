// Shares VMM memory by a descriptor. The maker and all users of the memory are killed while a process without
// CUDA holds the descriptor. Then a process maps the memory read-only. Finally the descriptor is closed, and
// the memory returns to the GPU.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "../../cuda/program.cuh"

namespace {

using lesson::driver;
using lesson::end_of;
using lesson::figure;
using lesson::now_us;
using lesson::receive_fd;
using lesson::send_fd;
using lesson::start;
using lesson::wait_for;

constexpr size_t bytes = size_t{1} << 30, words = bytes / 4;
constexpr unsigned incarnations = 3;

struct shared : lesson::record {
    std::atomic<double> free_mib[3];  // the free memory at three times: before the allocation, while only the
                                      // descriptor exists, and after the descriptor is closed
};
shared* common;
int sockets[2];

bool begin_cuda() { return lesson::begin_cuda(common->why); }
unsigned* map(CUmemGenericAllocationHandle h, CUmemAccess_flags flags) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = flags;
    const bool open =
        driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at, bytes, 0, 0, 0) == CUDA_SUCCESS &&
        driver<decltype(&cuMemMap)>("cuMemMap")(at, bytes, 0, h, 0) == CUDA_SUCCESS &&
        driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at, bytes, &access, 1) == CUDA_SUCCESS;
    return open ? reinterpret_cast<unsigned*>(at) : nullptr;
}
unsigned* import(int fd, CUmemAccess_flags flags, double& import_us, double& map_us) {
    const double begin = now_us();
    CUmemGenericAllocationHandle h = 0;
    if (driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
            &h, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS)
        return nullptr;
    const double imported = now_us();
    unsigned* const at = map(h, flags);
    import_us = imported - begin, map_us = now_us() - imported;
    return at;
}

__global__ void number(unsigned* at) {
    for (size_t k = blockIdx.x * size_t{blockDim.x} + threadIdx.x; k < words;
         k += size_t{gridDim.x} * blockDim.x)
        at[k] = static_cast<unsigned>(k);
}
/// Counts the words that differ from their expected value: word k is k + `incarnation` after `incarnation`
/// earlier users, because each user adds 1. `adds`: this user adds 1 to each word.
__global__ void check(unsigned* at, unsigned incarnation, bool adds, unsigned* wrong) {
    for (size_t k = blockIdx.x * size_t{blockDim.x} + threadIdx.x; k < words;
         k += size_t{gridDim.x} * blockDim.x) {
        if (at[k] != static_cast<unsigned>(k) + incarnation) atomicAdd(wrong, 1U);
        if (adds) at[k] = static_cast<unsigned>(k) + incarnation + 1;
    }
}
/// Returns false if a word is wrong or CUDA reports an error.
bool is_whole(unsigned* at, unsigned incarnation, bool adds) {
    unsigned *wrong = nullptr, number_wrong = 1;
    if (cudaMalloc(&wrong, 4) != cudaSuccess || cudaMemset(wrong, 0, 4) != cudaSuccess) return false;
    check<<<512, 256>>>(at, incarnation, adds, wrong);
    return cudaMemcpy(&number_wrong, wrong, 4, cudaMemcpyDeviceToHost) == cudaSuccess && number_wrong == 0;
}

int maker() {
    if (!begin_cuda()) return 3;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle h = 0;
    int fd = -1;
    if (driver<decltype(&cuMemCreate)>("cuMemCreate")(&h, bytes, &prop, 0) != CUDA_SUCCESS ||
        driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
            &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
        return 1;
    unsigned* const at = map(h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    if (at == nullptr) return 1;
    number<<<512, 256>>>(at);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    send_fd(sockets[1], fd);
    return kill(getpid(), SIGKILL);
}
/// Kills itself by SIGKILL if every word was correct. If the process ends in any other way, a word was wrong.
int user(int fd, unsigned incarnation) {
    double import_us = 0, map_us = 0;
    unsigned* const at =
        begin_cuda() ? import(fd, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, import_us, map_us) : nullptr;
    if (at == nullptr || !is_whole(at, incarnation, true)) return 1;
    if (incarnation == 0) figure("cuda.import.us", import_us), figure("cuda.map.us", map_us);
    return kill(getpid(), SIGKILL);
}
__global__ void scribble(unsigned* at) { at[threadIdx.x] = 0xBAD; }
int read_only(int fd) {
    double us = 0;
    unsigned* const at = begin_cuda() ? import(fd, CU_MEM_ACCESS_FLAGS_PROT_READ, us, us) : nullptr;
    if (at == nullptr) return 1;
    figure("cuda.readonly.read", is_whole(at, incarnations, false));
    scribble<<<1, 32>>>(at);
    figure("cuda.readonly.code", cudaDeviceSynchronize());
    _exit(0);
}
int still_intact(int fd) {
    double us = 0;
    unsigned* const at = begin_cuda() ? import(fd, CU_MEM_ACCESS_FLAGS_PROT_READ, us, us) : nullptr;
    figure("cuda.readonly.whole", at != nullptr && is_whole(at, incarnations, false));
    return 0;
}
/// A separate process that measures the free GPU memory at each step.
int onlooker() {
    if (!begin_cuda()) return 3;
    for (int k = 0; k < 3; ++k) {
        if (!wait_for(2 * k + 1)) return 1;
        size_t free = 0, all = 0;
        cudaMemGetInfo(&free, &all);
        common->free_mib[k] = static_cast<double>(free) / (1 << 20);
        common->step = 2 * k + 2;
    }
    return 0;
}

bool notify_onlooker(int step) {
    common->step = step;
    return wait_for(step + 1);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-descriptors-cuda")) return 2;
    common = lesson::make_record<shared>();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
    if (end_of(start([] { return begin_cuda() ? 0 : 3; })) != 0) return lesson::no_gpu(common->why);
    const pid_t observer = start(onlooker);
    bool well = notify_onlooker(1) && end_of(start(maker)) == -SIGKILL;
    timeval second{1, 0};
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    const int fd = well ? receive_fd(sockets[0]) : -1;
    unsigned number_of = 0, damaged = 0;
    for (; fd >= 0 && number_of < incarnations; ++number_of)
        damaged += end_of(start([&] { return user(fd, number_of); })) != -SIGKILL;
    figure("cuda.processes.number", number_of), figure("cuda.processes.damaged", damaged);
    if (fd >= 0)
        (void)end_of(start([&] { return read_only(fd); })),
            (void)end_of(start([&] { return still_intact(fd); }));
    well = well && fd >= 0 && notify_onlooker(3);
    close(fd);
    usleep(200'000);  // the driver's release of the memory is asynchronous
    well = well && notify_onlooker(5);
    if (!well) kill(observer, SIGKILL);
    well = end_of(observer) == 0 && well;
    const double mib = static_cast<double>(bytes) / (1 << 20);
    figure("cuda.mib", mib);
    figure("cuda.held.share", (common->free_mib[0] - common->free_mib[1]) / mib);
    figure("cuda.freed.share", (common->free_mib[0] - common->free_mib[2]) / mib);
    std::fputs(common->output, stdout);
    return well ? 0 : 1;
}
