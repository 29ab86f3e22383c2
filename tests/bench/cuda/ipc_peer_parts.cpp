// What `carousel bench ipc` can't say of a peer GPU's memory by one figure: copies between it and the host by
// streams of either GPU, one way and both ways; and the steps of importing a pool, by size, of the same GPU
// and of a peer. Needs two GPUs that are peers. Exit code 77: there are none.
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/ipc/cuda/gpu_info.hpp"
#include "bench/ipc/cuda/gpu_parts.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/fd_socket.hpp"

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::bench::gpu;

namespace {

constexpr u64 bytes = u64{256} << 20U;
constexpr u32 rounds = 5, times = 4;

f64 us_of(const std::function<void()>& what) {
    const u64 begin = now_ns();
    what();
    return static_cast<f64>(now_ns() - begin) / 1000;
}
cudaStream_t stream_on(int device) {
    cudaStream_t s = nullptr;
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
    return s;
}

struct sides {
    char *host = nullptr, *device = nullptr;
};
/// GB/s in all: to the memory by stream `to`, from it by `from`; null: that way isn't taken.
f64 rate(const sides& m, cudaStream_t to, cudaStream_t from) {
    const u64 half = bytes / 2;
    std::vector<f64> all;
    for (u32 round = 0; round <= rounds; ++round) {
        const f64 us = us_of([&] {
            for (u32 k = 0; k < times; ++k) {
                if (to != nullptr)
                    check(cudaMemcpyAsync(m.device, m.host, half, cudaMemcpyDefault, to), "a copy there");
                if (from != nullptr)
                    check(cudaMemcpyAsync(m.host + half, m.device + half, half, cudaMemcpyDefault, from),
                          "a copy back");
            }
            if (to != nullptr) check(cudaStreamSynchronize(to), "a copy there");
            if (from != nullptr) check(cudaStreamSynchronize(from), "a copy back");
        });
        const u32 ways = (to != nullptr ? 1 : 0) + (from != nullptr ? 1 : 0);
        if (round > 0) all.push_back(static_cast<f64>(half * times * ways) / us / 1000);
    }
    return median_of(all);
}
int copies() {
    void *pinned = nullptr, *at = nullptr;
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaDeviceEnablePeerAccess(1, 0), "cudaDeviceEnablePeerAccess");
    check(cudaHostAlloc(&pinned, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    const std::array<cudaStream_t, 4> s = {stream_on(0), stream_on(0), stream_on(1), stream_on(1)};
    for (const int device : {0, 1}) {
        check(cudaSetDevice(device), "cudaSetDevice");
        check(cudaMalloc(&at, bytes), "cudaMalloc");
        const sides m{static_cast<char*>(pinned), static_cast<char*>(at)};
        std::printf("memory of GPU %d, GB/s: to it, from it, both ways in all\n", device);
        for (const int by : {0, 1})
            std::printf("  streams of GPU %d:         %6.1f %6.1f %6.1f\n", by, rate(m, s[2 * by], nullptr),
                        rate(m, nullptr, s[2 * by]), rate(m, s[2 * by], s[2 * by + 1]));
        std::printf("  to by GPU 0, from by 1:                 %6.1f\n", rate(m, s[0], s[2]));
        std::printf("  to by GPU 1, from by 0:                 %6.1f\n", rate(m, s[2], s[0]));
    }
    return 0;
}

struct exported {
    cudaMemPoolPtrExportData pointer;
    char why[200];
};
/// Holds a pool's memory on `device` until it is killed.
int pool_owner(exported& e, int device, u64 size, int socket) {
    check(cudaSetDevice(device), "cudaSetDevice");
    ticket t{};
    int fd = -1;
    (void)make(kind::pool, size, t, fd);
    e.pointer = t.pooled;
    if (!shm::send_message(socket, "pool", {fd})) return 1;
    for (;;) ::pause();
}
int pool_reader(const exported& e, int fd, u64 size, int owner, bool access_last) {
    check(cudaSetDevice(0), "cudaSetDevice");
    check(cudaFree(nullptr), "a context");
    constexpr u32 steps = 5;
    std::vector<f64> us[steps];
    for (u32 round = 0; round < rounds; ++round) {
        cudaMemPool_t pool = nullptr;
        void* at = nullptr;
        cudaMemPoolPtrExportData data = e.pointer;
        cudaMemAccessDesc access{};
        access.location.type = cudaMemLocationTypeDevice;
        access.flags = cudaMemAccessFlagsProtReadWrite;
        const auto step = [&](u32 n, const std::function<void()>& what) { us[n].push_back(us_of(what)); };
        step(0, [&] {
            check(cudaMemPoolImportFromShareableHandle(
                      &pool, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),  // NOLINT
                      cudaMemHandleTypePosixFileDescriptor, 0),
                  "cudaMemPoolImportFromShareableHandle");
        });
        const auto allow = [&] {
            step(1, [&] { check(cudaMemPoolSetAccess(pool, &access, 1), "cudaMemPoolSetAccess"); });
        };
        if (!access_last) allow();
        step(2, [&] { check(cudaMemPoolImportPointer(&at, pool, &data), "cudaMemPoolImportPointer"); });
        if (access_last) allow();
        check(cudaMemset(at, 0, size), "cudaMemset of an imported pool");
        check(cudaDeviceSynchronize(), "cudaMemset of an imported pool");
        step(3, [&] { check(cudaFree(at), "cudaFree"); });
        step(4, [&] { check(cudaMemPoolDestroy(pool), "cudaMemPoolDestroy"); });
    }
    std::printf("pool of GPU %d, %3llu MiB, access %s:", owner, static_cast<unsigned long long>(size >> 20U),
                access_last ? "last " : "first");
    for (const auto& s : us) std::printf(" %8.0f (first %8.0f)", median_of(s), s.front());
    std::printf("\n");
    std::fflush(stdout);
    return 0;
}
void pools() {
    std::printf("us: import the pool, set access, import the pointer, free, destroy\n");
    std::fflush(stdout);
    for (const int owner : {0, 1})
        for (const u64 size : {u64{2} << 20U, u64{32} << 20U, bytes})
            for (const bool access_last : {false, true}) {
                const shared_with_children<exported> e;
                const auto sockets = shm::socket_pair();
                const pid_t holds =
                    start_child([&] { return pool_owner(*e, owner, size, sockets.first.get()); });
                shm::message m;
                if (shm::receive_message(sockets.second.get(), m, 10'000'000'000) != shm::receive_status::ok)
                    std::printf("no pool came of GPU %d\n", owner);
                else
                    (void)end_child(start_child(
                        [&] { return pool_reader(*e, m.fds[0].get(), size, owner, access_last); }));
                ::kill(holds, SIGKILL);
                (void)end_child(holds);
            }
}

}  // namespace

int main() {
    const gpu_info here = look_at_gpus();
    if (here.devices < 2 || !here.peers) {
        std::printf("no two GPUs that are peers\n");
        return 77;
    }
    const pid_t child = start_child([] {
        try {
            return copies();
        } catch (const error& e) {
            std::printf("%s\n", e.what());
            return 1;
        }
    });
    const bool well = end_child(child);
    pools();
    return well ? 0 : 1;
}
