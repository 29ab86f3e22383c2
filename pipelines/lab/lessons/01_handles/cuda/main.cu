// CUDA IPC handles: which memory can be exported, what an importer sees, and what remains after the exporter
// is killed. For comparison, the program also shares VMM memory by a file descriptor. The parent never
// touches CUDA: it forks the other processes, holds the descriptor, and kills processes.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

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

constexpr size_t bytes = 2 << 20;
constexpr unsigned magic = 0x5EED5EED, next_magic = 0x0BAD0BAD;
constexpr int many = 1000;

struct shared : lesson::record {
    cudaIpcMemHandle_t whole, inner, small, freed, handles[many];
    size_t neighbour;  // both small allocations are in the same range of 2 MiB; this is the offset of the
                       // second allocation in the range
};
shared* common;
int sockets[2];

bool begin_cuda() { return lesson::begin_cuda(common->why); }
unsigned word_at(const void* at) {
    unsigned word = 0;
    if (cudaMemcpy(&word, at, sizeof word, cudaMemcpyDeviceToHost) != cudaSuccess) (void)cudaGetLastError();
    return word;
}
int code(cudaError_t e) {
    (void)cudaGetLastError();
    return static_cast<int>(e);
}

CUdeviceptr map(CUmemGenericAllocationHandle h, CUresult& r) {
    CUdeviceptr at = 0;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    r = driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&at, bytes, 0, 0, 0);
    if (r == CUDA_SUCCESS) r = driver<decltype(&cuMemMap)>("cuMemMap")(at, bytes, 0, h, 0);
    if (r == CUDA_SUCCESS) r = driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(at, bytes, &access, 1);
    return at;
}

/// Maps one VMM allocation twice in this process and sends its descriptor to the parent.
void export_vmm() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle h = 0;
    CUresult r = driver<decltype(&cuMemCreate)>("cuMemCreate")(&h, bytes, &prop, 0), r2 = r;
    if (r != CUDA_SUCCESS) return;
    const CUdeviceptr a = map(h, r), b = map(h, r2);
    int fd = -1;
    driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
        &fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (r == CUDA_SUCCESS && r2 == CUDA_SUCCESS) {
        cudaMemcpy(reinterpret_cast<void*>(a), &magic, sizeof magic, cudaMemcpyHostToDevice);
        figure("cuda.twice.two_places", a != b);
        figure("cuda.twice.same", word_at(reinterpret_cast<void*>(b)) == magic);
        cudaIpcMemHandle_t legacy;
        figure("cuda.export.vmm", code(cudaIpcGetMemHandle(&legacy, reinterpret_cast<void*>(a))));
    }
    cudaDeviceSynchronize();
    send_fd(sockets[1], fd);
}

int exporter() {
    if (!begin_cuda()) return 3;
    void *whole = nullptr, *managed = nullptr, *pooled = nullptr, *host = nullptr, *freed = nullptr,
         *home = nullptr;
    unsigned *small = nullptr, *next = nullptr;
    cudaMalloc(&whole, bytes), cudaMalloc(&freed, bytes);
    cudaMalloc(&small, 3), cudaMalloc(&next, 3);  // much smaller than a page
    cudaMemcpy(whole, &magic, sizeof magic, cudaMemcpyHostToDevice);
    cudaMemcpy(static_cast<char*>(whole) + 4096, &next_magic, sizeof magic, cudaMemcpyHostToDevice);
    cudaMemcpy(next, &next_magic, 3, cudaMemcpyHostToDevice);
    const auto place = [](const void* at) { return reinterpret_cast<size_t>(at); };
    figure("cuda.neighbour.apart",
           place(next) > place(small) ? place(next) - place(small) : place(small) - place(next));
    common->neighbour = place(small) / bytes == place(next) / bytes ? place(next) % bytes : bytes;
    figure("cuda.export.malloc", code(cudaIpcGetMemHandle(&common->whole, whole)));
    figure("cuda.export.inner", code(cudaIpcGetMemHandle(&common->inner, static_cast<char*>(whole) + 4096)));
    figure("cuda.export.small", code(cudaIpcGetMemHandle(&common->small, small)));
    cudaIpcMemHandle_t h;
    cudaMallocManaged(&managed, bytes);
    figure("cuda.export.managed", code(cudaIpcGetMemHandle(&h, managed)));
    cudaMallocAsync(&pooled, bytes, nullptr);
    cudaDeviceSynchronize();
    figure("cuda.export.async", code(cudaIpcGetMemHandle(&h, pooled)));
    cudaMallocHost(&host, bytes);
    figure("cuda.export.host", code(cudaIpcGetMemHandle(&h, host)));
    figure("cuda.home.open",
           code(cudaIpcOpenMemHandle(&home, common->whole, cudaIpcMemLazyEnablePeerAccess)));
    cudaIpcGetMemHandle(&common->freed, freed);
    cudaFree(freed);
    int exported = 0;
    for (void* at = nullptr; exported < many && cudaMalloc(&at, bytes) == cudaSuccess; ++exported)
        if (cudaIpcGetMemHandle(&common->handles[exported], at) != cudaSuccess) break;
    (void)cudaGetLastError();
    figure("cuda.many.exported", exported);
    figure("cuda.bits", 8.0 * sizeof(void*));
    export_vmm();
    cudaDeviceSynchronize();
    common->step = 1;
    for (;;) pause();  // the kill
}

void* open(const cudaIpcMemHandle_t& h, cudaError_t& e) {
    void* at = nullptr;
    e = cudaIpcOpenMemHandle(&at, h, cudaIpcMemLazyEnablePeerAccess);
    (void)cudaGetLastError();
    return at;
}

int importer() {
    if (!wait_for(1) || !begin_cuda()) return 3;
    cudaError_t e;
    const double begin = now_us();
    void* const whole = open(common->whole, e);
    figure("cuda.open.us", now_us() - begin);
    figure("cuda.open.whole", e == cudaSuccess && word_at(whole) == magic);
    void* const again = open(common->whole, e);
    figure("cuda.again.code", e), figure("cuda.again.same", again == whole);
    if (void* const inner = open(common->inner, e); e == cudaSuccess)
        figure("cuda.inner.at_base", word_at(inner) == magic ? 1 : word_at(inner) == next_magic ? 0 : 2);
    if (void* const small = open(common->small, e); e == cudaSuccess) {
        const char* const base = reinterpret_cast<char*>(reinterpret_cast<size_t>(small) / bytes * bytes);
        const bool seen = common->neighbour < bytes &&
                          (word_at(base + common->neighbour) & 0xFFFFFF) == (next_magic & 0xFFFFFF);
        figure("cuda.neighbour.seen", seen);
    }
    (void)open(common->freed, e);
    figure("cuda.freed.code", e);
    cudaIpcMemHandle_t rubbish;
    std::memset(&rubbish, 0x55, sizeof rubbish);
    (void)open(rubbish, e);
    figure("cuda.rubbish.code", e);
    int opened = 0;
    const double from = now_us();
    for (; opened < many; ++opened) {
        (void)open(common->handles[opened], e);
        if (e != cudaSuccess) break;
    }
    figure("cuda.many.opened", opened), figure("cuda.many.us", (now_us() - from) / many);
    common->step = 2;
    if (!wait_for(3)) return 1;
    figure("cuda.mapped.works", word_at(whole) == magic);  // the exporter is dead
    return 0;
}

/// Opens the handle on the other GPU, if there is one.
int other_device() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
        lesson::append_output("missing two_gpus only one GPU here\n");
        return 0;
    }
    cudaError_t e = cudaSetDevice(1);
    void* const at = open(common->whole, e);
    figure("two_gpus.open.code", e);
    figure("two_gpus.whole", e == cudaSuccess && word_at(at) == magic);
    return 0;
}

/// A process that starts after the exporter's death. It tries to open the intact handle (which it reads from
/// the file, as in the textbooks) and the descriptor.
int late_opener(int fd, const char* file) {
    if (!begin_cuda()) return 3;
    cudaIpcMemHandle_t h{};
    FILE* in = std::fopen(file, "rb");
    figure("cuda.file.whole", in != nullptr && std::fread(&h, sizeof h, 1, in) == 1);
    if (in != nullptr) std::fclose(in);
    cudaError_t e;
    (void)open(h, e);
    figure("cuda.stale.code", e);
    if (fd < 0) return 0;
    const double begin = now_us();
    CUmemGenericAllocationHandle vmm = 0;
    CUresult r = driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
        &vmm, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const CUdeviceptr at = r == CUDA_SUCCESS ? map(vmm, r) : 0;
    figure("cuda.vmm.us", now_us() - begin);
    figure("cuda.vmm.whole", r == CUDA_SUCCESS && word_at(reinterpret_cast<void*>(at)) == magic);
    return 0;
}

/// Runs the textbook's two programs unchanged; they pass a handle in a file. The producer is killed before it
/// calls fclose().
int textbook_producer(const char* file) {
    void* memory = nullptr;
    cudaIpcMemHandle_t handle;
    if (!begin_cuda() || cudaMalloc(&memory, bytes) != cudaSuccess) return 3;
    cudaIpcGetMemHandle(&handle, memory);
    FILE* out = std::fopen(file, "wb");
    if (out == nullptr) return 1;
    std::fwrite(&handle, sizeof handle, 1, out);
    kill(getpid(), SIGKILL);
    return std::fclose(out);
}
int textbook_consumer(const char* file) {
    if (!begin_cuda()) return 3;
    void* memory = nullptr;
    cudaIpcMemHandle_t handle;
    std::memset(&handle, 0x55, sizeof handle);  // stands for the arbitrary bytes on the producer's stack
    FILE* in = nullptr;
    while ((in = std::fopen(file, "rb")) == nullptr) usleep(1000);
    const size_t got = std::fread(&handle, 1, sizeof handle, in);  // the textbooks ignore the result
    figure("cuda.textbook.bytes", static_cast<double>(got));
    figure("cuda.textbook.code", code(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess)));
    return std::fclose(in);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-handles-cuda")) return 2;
    common = lesson::make_record<shared>();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
    if (end_of(start([] { return begin_cuda() ? 0 : 3; })) != 0) return lesson::no_gpu(common->why);
    const pid_t maker = start(exporter), user = start(importer);
    const bool both = wait_for(2);
    if (both) (void)end_of(start(other_device));
    timeval second{1, 0};
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    const int fd = both ? receive_fd(sockets[0]) : -1;
    const std::string file = "/tmp/carousel-lesson-" + std::to_string(getpid());
    FILE* out = std::fopen(file.c_str(), "wb");
    if (out != nullptr) std::fwrite(&common->whole, sizeof common->whole, 1, out), std::fclose(out);
    kill(maker, SIGKILL);
    (void)end_of(maker);
    common->step = 3;
    if (!both) kill(user, SIGKILL);
    (void)end_of(user);
    if (both) (void)end_of(start([&] { return late_opener(fd, file.c_str()); }));
    unlink(file.c_str());
    const pid_t textbook = start([&] { return textbook_producer(file.c_str()); });
    (void)end_of(start([&] { return textbook_consumer(file.c_str()); }));
    (void)end_of(textbook);
    unlink(file.c_str());
    std::fputs(common->output, stdout);
    return both ? 0 : 1;
}
