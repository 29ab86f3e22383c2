// Two tenants of one GPU: another user's process gets a handle and a descriptor, queries the free memory, and
// searches memory for data that a dead process has left. Needs the right to become two users (root). The
// parent never touches CUDA.
#include <cuda.h>
#include <cuda_runtime.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "../../cuda/program.cuh"

namespace {

using lesson::append_output;
using lesson::driver;
using lesson::end_of;
using lesson::figure;
using lesson::receive_fd;
using lesson::send_fd;
using lesson::start;
using lesson::wait_for;

constexpr size_t bytes = 256 << 20, words = bytes / 4;
constexpr uid_t owner = 65533, other_user = 65534;

struct shared : lesson::record {
    cudaIpcMemHandle_t handle;
};
shared* common;
int sockets[2];

void missing(const char* why) { append_output("missing two_gpu_users %s\n", why); }
bool begin_cuda() { return lesson::begin_cuda(common->why); }
bool become(uid_t user) {
    return setgroups(0, nullptr) == 0 && setresgid(user, user, user) == 0 &&
           setresuid(user, user, user) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}
unsigned* map(CUmemGenericAllocationHandle h) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool open =
        driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at, bytes, 0, 0, 0) == CUDA_SUCCESS &&
        driver<decltype(&cuMemMap)>("cuMemMap")(at, bytes, 0, h, 0) == CUDA_SUCCESS &&
        driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at, bytes, &access, 1) == CUDA_SUCCESS;
    return open ? reinterpret_cast<unsigned*>(at) : nullptr;
}

/// A pattern that does not occur by chance.
__host__ __device__ unsigned secret(size_t k) { return static_cast<unsigned>(k * 2654435761ULL) ^ 0x5EC2E7U; }
__global__ void fill(unsigned* at) {
    for (size_t k = blockIdx.x * size_t{blockDim.x} + threadIdx.x; k < words;
         k += size_t{gridDim.x} * blockDim.x)
        at[k] = secret(k);
}
/// Counts the words that match the secret. Each word is compared only with the words that have the same
/// offset in one of the secret's 2 MiB pages. This is sufficient, because a page that CUDA reuses begins
/// where one of the secret's pages began, or a multiple of 2 MiB later.
__global__ void find(const unsigned* at, size_t number, unsigned long long* found) {
    constexpr size_t page = (2 << 20) / 4;
    for (size_t k = blockIdx.x * size_t{blockDim.x} + threadIdx.x; k < number;
         k += size_t{gridDim.x} * blockDim.x)
        for (size_t from = k % page; at[k] != 0 && from < words; from += page)
            if (at[k] == secret(from)) {
                atomicAdd(found, 1ULL);
                break;
            }
}
/// Counts matches in the `number` words at `at`; -1 if CUDA reports an error.
double found_in(const unsigned* at, size_t number) {
    unsigned long long *found = nullptr, n = 0;
    if (cudaMalloc(&found, 8) != cudaSuccess || cudaMemset(found, 0, 8) != cudaSuccess) return -1;
    find<<<2048, 256>>>(at, number, found);
    if (cudaMemcpy(&n, found, 8, cudaMemcpyDeviceToHost) != cudaSuccess) return -1;
    return static_cast<double>(n);
}

/// Stores a secret in memory with a handle and in memory with a descriptor.
int owner_main() {
    unsigned* legacy = nullptr;
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle h = 0;
    int fd = -1;
    if (!become(owner) || !begin_cuda()) return common->step = -1;
    if (!wait_for(1) || cudaMalloc(&legacy, bytes) != cudaSuccess ||
        cudaIpcGetMemHandle(&common->handle, legacy) != cudaSuccess ||
        driver<decltype(&cuMemCreate)>("cuMemCreate")(&h, bytes, &prop, 0) != CUDA_SUCCESS ||
        driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
            &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
        return common->step = -1;
    unsigned* const vmm = map(h);
    if (vmm == nullptr) return common->step = -1;
    fill<<<1024, 256>>>(legacy), fill<<<1024, 256>>>(vmm);
    if (cudaDeviceSynchronize() != cudaSuccess) return common->step = -1;
    send_fd(sockets[1], fd);
    common->step = 2;
    for (;;) pause();  // the kill
}
void try_handle() {
    void* at = nullptr;
    const cudaError_t e = cudaIpcOpenMemHandle(&at, common->handle, cudaIpcMemLazyEnablePeerAccess);
    (void)cudaGetLastError();
    figure("cuda.handle.code", e);
    unsigned word = 0;
    if (e == cudaSuccess) cudaMemcpy(&word, static_cast<unsigned*>(at) + 77, 4, cudaMemcpyDeviceToHost);
    figure("cuda.handle.whole", word == secret(77));
    if (e == cudaSuccess) cudaIpcCloseMemHandle(at);
}
void try_descriptor(int fd) {
    CUmemGenericAllocationHandle h = 0;
    unsigned word = 0;
    const bool imported = driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
                              &h, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS;
    const unsigned* const at = imported ? map(h) : nullptr;
    if (at != nullptr) cudaMemcpy(&word, at + 77, 4, cudaMemcpyDeviceToHost);
    figure("cuda.descriptor.whole", word == secret(77));
    if (at == nullptr) return;
    driver<decltype(&cuMemUnmap)>("cuMemUnmap")(reinterpret_cast<CUdeviceptr>(at), bytes);
    driver<decltype(&cuMemRelease)>("cuMemRelease")(h);
}
/// Searches the free memory, except for a small remainder, word by word.
void scan_for_leftovers() {
    size_t free = 0, all = 0;
    unsigned* at = nullptr;
    cudaMemGetInfo(&free, &all);
    size_t take = free / (2 << 20) * (2 << 20);
    while (take > bytes && cudaMalloc(&at, take) != cudaSuccess)
        take -= size_t{64} << 20, (void)cudaGetLastError();
    figure("cuda.leftover.share", static_cast<double>(take) / static_cast<double>(free));
    figure("cuda.leftover.rest_mib", static_cast<double>(free - take) / (1 << 20));
    figure("cuda.leftover.words", found_in(at, take / 4));
    cudaFree(at);
}
int other_user_main() {
    if (!become(other_user) || !begin_cuda()) return common->step = -1;
    size_t before = 0, with = 0, all = 0;
    usleep(500'000);  // wait until the owner has its context
    cudaMemGetInfo(&before, &all);
    common->step = 1;
    if (!wait_for(2)) return 1;
    cudaMemGetInfo(&with, &all);
    figure("cuda.mib", 2 * bytes / 1048576.0);
    figure("cuda.seen.share", (static_cast<double>(before) - static_cast<double>(with)) / (2 * bytes));
    try_handle();
    try_descriptor(receive_fd(sockets[0]));
    common->step = 3;
    if (!wait_for(4)) return 1;  // the owner is dead
    scan_for_leftovers();
    return 0;
}
/// Searches memory that is freed and allocated again within one process.
int own_leftovers() {
    unsigned* at = nullptr;
    if (!begin_cuda() || cudaMalloc(&at, bytes) != cudaSuccess) return 1;
    fill<<<1024, 256>>>(at);
    cudaDeviceSynchronize();
    cudaFree(at);
    if (cudaMalloc(&at, bytes) != cudaSuccess) return 1;
    figure("cuda.own.words", found_in(at, words));
    return 0;
}

void two_users() {
    if (end_of(start([] { return become(owner) ? 0 : 2; })) != 0)
        return missing("this process may not become another user: start the lab as root for that");
    if (end_of(start([] { return become(other_user) && begin_cuda() ? 0 : 2; })) != 0)
        return missing("another user can't use this GPU (check the permissions of /dev/nvidia*)");
    const pid_t has = start(owner_main), prober = start(other_user_main);
    const bool probed = wait_for(3);
    kill(has, SIGKILL);
    (void)end_of(has);
    if (probed) common->step = 4;
    if (!probed) kill(prober, SIGKILL);
    (void)end_of(prober);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-tenants-cuda")) return 2;
    common = lesson::make_record<shared>();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
    if (end_of(start([] { return begin_cuda() ? 0 : 3; })) != 0) return lesson::no_gpu(common->why);
    const bool well = end_of(start(own_leftovers)) == 0;
    two_users();
    std::fputs(common->output, stdout);
    return well ? 0 : 1;
}
