#pragma once
// The shared records of the processes of gpu_kills.cu. For each element: a record in GPU memory, advanced by
// the kernels that use the element, so that a death leaves the completed steps. Of the processes: counts in a
// file that all map.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/types.hpp"

namespace carousel::test {

inline constexpr u32 most_items = 3U << 24U,
                     items_each = most_items / 3;  ///< of each of leased, popped, work

/// Fields of a story: how often.
inline constexpr u32 sent = 1, finishing = 1U << 8U, finished = 1U << 16U, dead_letters = 1U << 24U;
[[nodiscard]] constexpr u32 times(u32 story, u32 field) { return story / field & 0xFFU; }

/// The primitives that a process uses concurrently, each in its own thread and stream.
enum primitive : u32 { of_pool, of_semaphore, of_queue, of_work_queue, all_primitives };
inline constexpr const char* primitive_names[] = {"pool", "semaphore", "queue", "work queue"};
inline constexpr u32 most_clients = 16;

/// In GPU memory: changed only by kernels.
struct gpu_story {
    u32 torn, not_owned, overwritten, done;  ///< elements and leases that broke a rule; deeds
    u32 inside, turns, reserved[2];          ///< the epoch that has the only permit; how often one had it
    u32 item[most_items];
};

/// Elements know whether they are whole.
struct element {
    u64 number, check, more[2];
#if defined(__CUDACC__)
    [[nodiscard]] __host__ __device__ static element of(u64 n) {
        const u64 c = n * 0x9E3779B97F4A7C15U ^ 0x5AU;
        return {n, c, {c + 1, c + 2}};
    }
    [[nodiscard]] __host__ __device__ bool whole() const {
        const element o = of(number);
        return check == o.check && more[0] == o.more[0] && more[1] == o.more[1] && number < most_items;
    }
#endif
};

/// In a file: changed only by CPUs.
struct host_book {
    std::atomic<u32> next_item[3];  ///< of the queue that is leased, the one that is popped, the work queue
    std::atomic<u32> ready[most_clients];  ///< of each client: its epoch, once it uses them all
    /// For each client and primitive: 1 while its kernel or wait is in flight, or something of it is held.
    std::atomic<u32> in_use[most_clients][all_primitives];
    std::atomic<u32> broken;
    std::atomic<u64> operations;
    struct {
        std::atomic<u32> pid;
        std::atomic<u64> start_time;
    } process[1U << 16U];      ///< by epoch
    std::atomic<u32> at_step;  ///< processes that died at a named step
    char first_broken[240];
    void find(const std::string& what) {
        if (broken.fetch_add(1) == 0) what.copy(first_broken, sizeof first_broken - 1);
    }
};

inline host_book& map_book(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(host_book)) != 0) throw std::runtime_error("no book " + path);
    void* at = ::mmap(nullptr, sizeof(host_book), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) throw std::runtime_error("the book can't be mapped: " + path);
    return *static_cast<host_book*>(at);
}

}  // namespace carousel::test
