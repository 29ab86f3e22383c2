// Compares a process's own GPU memory with memory that another process exported, by a legacy handle and by a
// VMM descriptor: read bandwidth of a kernel by size, and latency by a pointer chase; then the exporter is
// killed. The parent never touches CUDA.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "../../cuda/program.cuh"

namespace {

using lesson::append_output;
using lesson::driver;
using lesson::end_of;
using lesson::start;

constexpr size_t most = 256 << 20, least = 1 << 20, line = 128;
constexpr int rounds = 7, repeats = 20;

struct shared : lesson::record {
    cudaIpcMemHandle_t handle;
};
shared* common;
int sockets[2];

bool wait_for(int step) { return lesson::wait_for(step, 30'000); }
bool begin_cuda() { return lesson::begin_cuda(common->why); }
void* map(CUmemGenericAllocationHandle h) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at, most, 0, 0, 0);
    driver<decltype(&cuMemMap)>("cuMemMap")(at, most, 0, h, 0);
    const bool open =
        driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at, most, &access, 1) == CUDA_SUCCESS;
    return open ? reinterpret_cast<void*>(at) : nullptr;
}
/// Sends `fd` to another process, or receives one if `fd` is negative; returns -1 on failure.
int pass_fd(int fd) {
    char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
    iovec io{&byte, 1};
    msghdr m{};
    m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = control, m.msg_controllen = sizeof control;
    if (fd < 0) {
        if (recvmsg(sockets[0], &m, 0) != 1 || CMSG_FIRSTHDR(&m) == nullptr) return -1;
        std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
        return fd;
    }
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(sockets[1], &m, 0) == 1 ? fd : -1;
}

int exporter() {
    if (!begin_cuda()) return 3;
    void* legacy = nullptr;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle h = 0;
    int fd = -1;
    if (cudaMalloc(&legacy, most) != cudaSuccess ||
        cudaIpcGetMemHandle(&common->handle, legacy) != cudaSuccess ||
        driver<decltype(&cuMemCreate)>("cuMemCreate")(&h, most, &prop, 0) != CUDA_SUCCESS ||
        driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
            &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
        return 1;
    if (pass_fd(fd) < 0) return 1;
    common->step = 1;
    for (;;) pause();  // the kill
}

__global__ void read_all(const uint4* at, size_t number, unsigned* out) {
    unsigned sum = 0;
    for (size_t k = blockIdx.x * size_t{blockDim.x} + threadIdx.x; k < number;
         k += size_t{gridDim.x} * blockDim.x) {
        const uint4 v = at[k];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x12345678) *out = sum;  // keeps the compiler from removing the reads
}
__global__ void chase(const char* at, int steps, unsigned* out) {
    unsigned where = 0;
    for (int k = 0; k < steps; ++k) where = *reinterpret_cast<const volatile unsigned*>(at + where);
    *out = where;
}

double median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}
/// Returns ms per call, averaged over `times` calls between two events.
template <class Launch>
double time_of(int times, Launch launch) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    cudaEventRecord(begin);
    for (int k = 0; k < times; ++k) launch();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    cudaEventDestroy(begin), cudaEventDestroy(end);
    return ms / times;
}
unsigned* result;
double read_rate(const void* at, size_t bytes) {
    const double ms =
        time_of(repeats, [&] { read_all<<<1024, 256>>>(static_cast<const uint4*>(at), bytes / 16, result); });
    return static_cast<double>(bytes) / ms / 1e6;
}
void lay_ring(void* at) {
    std::vector<unsigned> order(most / line), ring(most / 4);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t k = 0; k < order.size(); ++k)
        ring[order[k] * (line / 4)] = order[(k + 1) % order.size()] * static_cast<unsigned>(line);
    cudaMemcpy(at, ring.data(), most, cudaMemcpyHostToDevice);
}

int reader() {
    if (!wait_for(1) || !begin_cuda()) return 3;
    CUmemGenericAllocationHandle h = 0;
    void *own = nullptr, *legacy = nullptr;
    const int fd = pass_fd(-1);
    if (cudaMalloc(&result, 4) != cudaSuccess || cudaMalloc(&own, most) != cudaSuccess ||
        cudaIpcOpenMemHandle(&legacy, common->handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess ||
        driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
            &h, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS)
        return 1;
    void* const vmm = map(h);
    if (vmm == nullptr) return 1;
    void* const kinds[] = {own, legacy, vmm};
    const char* const names[] = {"local", "legacy", "vmm"};
    double rate[3] = {};
    for (void* at : kinds) lay_ring(at), (void)read_rate(at, most);  // warm-up
    for (size_t bytes = least; bytes <= most; bytes *= 4) {
        std::vector<double> all[3];
        for (int round = 0; round < rounds; ++round)  // interleaved
            for (int k = 0; k < 3; ++k) all[k].push_back(read_rate(kinds[k], bytes));
        for (int k = 0; k < 3; ++k)
            append_output("curve GPU-%s %zu %.2f\n", names[k], bytes, rate[k] = median(all[k]));
    }
    double step[3] = {};
    for (int k = 0; k < 3; ++k) {
        std::vector<double> all;
        for (int round = 0; round < rounds; ++round)
            all.push_back(1e6 / 20'000 *
                          time_of(1, [&] { chase<<<1, 1>>>(static_cast<char*>(kinds[k]), 20'000, result); }));
        step[k] = median(all);
        append_output("figure cuda.%s.read %.2f\nfigure cuda.%s.chase %.2f\n", names[k], rate[k], names[k],
                      step[k]);
    }
    append_output("figure cuda.legacy.ratio %.4f\nfigure cuda.vmm.ratio %.4f\nfigure cuda.chase.ratio %.4f\n",
                  rate[1] / rate[0], rate[2] / rate[0], step[1] / step[0]);
    common->step = 2;
    if (!wait_for(3)) return 1;  // the exporter is dead
    const double after = read_rate(legacy, most);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    append_output("figure cuda.killed.ratio %.3f\n", after / rate[1]);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-bandwidth-cuda")) return 2;
    common = lesson::make_record<shared>();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
    if (end_of(start([] { return begin_cuda() ? 0 : 3; })) != 0) return lesson::no_gpu(common->why);
    const pid_t maker = start(exporter), user = start(reader);
    const bool read = wait_for(2);
    kill(maker, SIGKILL);
    (void)end_of(maker);
    common->step = 3;
    if (!read) kill(user, SIGKILL);
    const bool well = end_of(user) == 0;
    std::fputs(common->output, stdout);
    return read && well ? 0 : 1;
}
