// Compares a process's own memory with a memfd that another process has made.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <random>

#include "bench/ipc/run.hpp"
#include "bench/ipc/workers.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::bench {
namespace {

constexpr u64 least = u64{16} << 10U, most = u64{64} << 20U, line = 64;
constexpr u64 bytes_a_round = u64{16} << 20U;
constexpr u64 steps = 200'000;

volatile u64 kept;  // results are stored here, so that the compiler does not remove reads and chases

u64 sum_of(const u64* at, u64 words) {
    u64 s[4] = {};
    for (u64 k = 0; k < words; k += 4)
        for (u64 j = 0; j < 4; ++j) s[j] += at[k + j];
    return s[0] + s[1] + s[2] + s[3];
}

/// Returns ns per call.
template <class Work>
f64 time_of(const Work& work) {
    const u64 begin = now_ns();
    work();
    return static_cast<f64>(now_ns() - begin);
}
u64 repeats(u64 bytes) { return std::max<u64>(1, bytes_a_round / bytes); }

f64 read_rate(const void* at, u64 bytes) {
    const u64 times = repeats(bytes);
    return static_cast<f64>(bytes * times) / time_of([&] {
               for (u64 k = 0; k < times; ++k) kept = sum_of(static_cast<const u64*>(at), bytes / 8);
           });
}
f64 write_rate(void* at, u64 bytes) {
    const u64 times = repeats(bytes);
    return static_cast<f64>(bytes * times) / time_of([&] {
               for (u64 k = 0; k < times; ++k) {
                   std::memset(at, static_cast<int>(k), bytes);
                   kept = *static_cast<const volatile u64*>(at);
               }
           });
}
/// Copies within the memory, from one half to the other; counts bytes read and written.
f64 copy_rate(void* at, u64 bytes) {
    const u64 half = bytes / 2, times = repeats(bytes);
    return static_cast<f64>(2 * half * times) / time_of([&] {
               for (u64 k = 0; k < times; ++k) {
                   std::memcpy(static_cast<char*>(at) + half, at, half);
                   kept = *reinterpret_cast<const volatile u64*>(static_cast<char*>(at) + half);
               }
           });
}

/// Makes one cycle of offsets through all cache lines, in an order that no prefetcher predicts.
void lay_ring(void* at) {
    std::vector<u64> order(most / line);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    for (std::size_t k = 0; k < order.size(); ++k)
        *reinterpret_cast<u64*>(static_cast<char*>(at) + order[k] * line) =
            order[(k + 1) % order.size()] * line;
}
f64 chase_ns(const void* at) {
    u64 where = 0;
    const f64 ns = time_of([&] {
        for (u64 k = 0; k < steps; ++k)
            where = *reinterpret_cast<const volatile u64*>(static_cast<const char*>(at) + where);
    });
    kept = where;
    return ns / static_cast<f64>(steps);
}

void* map(int fd) {
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* at = ::mmap(nullptr, most, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) throw shm_error("64 MiB for the bench can't be mapped: " + errno_text(errno));
    return at;
}

struct subject {
    memory_row row;
    void* at = nullptr;
    std::vector<f64> write, copy, chase, open;
    std::vector<std::vector<f64>> read;
};

/// Returns the time in microseconds to map the memory as a new process would, touch it and unmap it.
f64 open_us(int fd) {
    return time_of([&] {
               void* at = map(fd);
               kept = *static_cast<const volatile u64*>(at);
               ::munmap(at, most);
           }) /
           1000;
}

void measure_round(subject& s, int fd) {
    std::size_t k = 0;
    for (u64 bytes = least; bytes <= most; bytes *= 4, ++k) {
        if (s.read.size() <= k) s.read.emplace_back();
        s.read[k].push_back(read_rate(s.at, bytes));
    }
    lay_ring(s.at);
    s.chase.push_back(chase_ns(s.at));
    s.write.push_back(write_rate(s.at, most));
    s.copy.push_back(copy_rate(s.at, most));
    s.open.push_back(open_us(fd));
}

void conclude(subject& s) {
    std::size_t k = 0;
    for (u64 bytes = least; bytes <= most; bytes *= 4, ++k)
        s.row.sizes.emplace_back(static_cast<f64>(bytes), median_of(s.read[k]));
    s.row.read = s.row.sizes.back().second;
    s.row.write = median_of(s.write), s.row.copy = median_of(s.copy);
    s.row.chase_ns = median_of(s.chase), s.row.open_us = median_of(s.open);
}

}  // namespace

void measure_memory(const ipc_bench_options& o, ipc_bench_result& r,
                    const progress_function& report_progress) {
    report_progress("memory");
    const shm::unique_fd fd(::memfd_create("carousel-bench", MFD_CLOEXEC));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(most)) != 0)
        throw shm_error("a memfd of 64 MiB for the bench: " + errno_text(errno));
    // Another process touches the pages first and stores a distinct value in each word.
    const bool made = end_child(start_child([&] {
        u64* const words = static_cast<u64*>(map(fd.get()));
        for (u64 k = 0; k < most / 8; ++k) words[k] = k;
        return 0;
    }));
    subject all[2];
    all[0].row.kind = "local", all[1].row.kind = "memfd of another process";
    all[0].at = map(-1), all[1].at = map(fd.get());
    const u64* const words = static_cast<const u64*>(all[1].at);
    bool whole = made;
    for (u64 k = 0; k < most / 8; ++k) whole = whole && words[k] == k;
    all[0].row.verified = true, all[1].row.verified = whole;
    for (u32 k = 0; k < o.rounds; ++k)
        for (subject& s : all) measure_round(s, &s == &all[0] ? -1 : fd.get());
    for (subject& s : all) {
        conclude(s);
        s.row.ratio = s.row.read / all[0].row.read;
        r.memory.push_back(s.row);
        ::munmap(s.at, most);
    }
}

}  // namespace carousel::bench
