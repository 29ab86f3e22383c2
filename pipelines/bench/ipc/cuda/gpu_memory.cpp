// Compares a process's own GPU memory with GPU memory of another process. Uses two child processes. The owner
// makes memory of every kind and fills it. The reader opens all of it, measures the kinds in an interleaved
// order, and overwrites the memory; the owner then checks the overwritten data.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>

#include "bench/ipc/cuda/gpu_parts.hpp"
#include "bench/ipc/cuda/kernels.hpp"
#include "bench/ipc/run.hpp"
#include "bench/statistics.hpp"
#include "core/clock.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::bench {
namespace {

using namespace gpu;

constexpr u64 patience_ns = 20'000'000'000, line = 128;
constexpr u32 columns = 8, steps = 20'000;
constexpr u64 sizes[] = {u64{1} << 20U, u64{4} << 20U, u64{16} << 20U, u64{64} << 20U, u64{256} << 20U};
constexpr u32 owners_seed = 0x0A0B0C0D, readers_seed = 0x01020304;

struct shared_row {
    f64 column[columns];  // the figures, in the order of the members of gpu_memory_row
    f64 by_size[std::size(sizes)];
    f64 open_us, map_us, close_us;
    u32 verified;
    char why[160];  // why the row could not be measured; "" if it could
};
/// State shared by the two children and their parent.
struct board {
    std::atomic<u32> step;
    ticket tickets[kinds];
    shared_row own, host, rows[kinds];
    char why[200];
    u32 wrong[kinds];  // per kind: number of wrong words that the owner found in the reader's data
};
void copy_reason(char (&to)[160], const std::string& text) { text.copy(to, sizeof to - 1); }
bool wait_for(const std::atomic<u32>& word, u32 step) {
    for (const u64 end = now_ns() + patience_ns; word.load() < step && now_ns() < end;) ::usleep(200);
    return word.load() >= step;
}
u32 wrong_words(const void* at, u64 bytes, u32 seed) {
    u32 *wrong = nullptr, n = 1;
    check(cudaMalloc(&wrong, sizeof n), "cudaMalloc");
    check(cudaMemset(wrong, 0, sizeof n), "cudaMemset");
    count_wrong(at, bytes, seed, wrong, nullptr);
    check(cudaMemcpy(&n, wrong, sizeof n, cudaMemcpyDeviceToHost), "checking the transferred data");
    check(cudaFree(wrong), "cudaFree");
    return n;
}

/// Makes memory of all kinds and sends the descriptors in the order of the kinds. For a kind that has no
/// descriptor, sends a message without a descriptor.
int owner(board& b, int device, u64 bytes, int socket) {
    check(cudaSetDevice(device), "cudaSetDevice");
    void* made[kinds] = {};
    for (u32 k = 0; k < kinds; ++k) {
        int fd = -1;
        try {
            made[k] = make(static_cast<kind>(k), bytes, b.tickets[k], fd);
            fill(made[k], bytes, owners_seed, nullptr);
            check(cudaStreamSynchronize(nullptr), "filling");
        } catch (const error& e) {
            copy_reason(b.rows[k].why, e.what());
        }
        if (!shm::send_message(socket, "memory", fd < 0 ? std::vector<int>{} : std::vector<int>{fd}))
            return 1;
    }
    b.step = 1;
    if (!wait_for(b.step, 2)) return 1;
    for (u32 k = 0; k < kinds; ++k)
        if (made[k] != nullptr && b.rows[k].why[0] == 0)
            b.wrong[k] = wrong_words(made[k], bytes, readers_seed);
    return 0;
}

/// The streams, events and buffers with which the reader measures.
struct bench_tools {
    u64 bytes;
    bool holds = false;  // whether work is enqueued on a held stream; false in the first round, because a
                         // kernel is loaded at its first launch and the loading would wait for the held
                         // stream
    gate held;
    cudaStream_t one = nullptr, other = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr, joined = nullptr;
    void *device = nullptr, *pinned = nullptr, *ring = nullptr;
    u32* result = nullptr;

    explicit bench_tools(u64 of) : bytes(of) {
        for (cudaStream_t* s : {&one, &other})
            check(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), "cudaStreamCreate");
        for (cudaEvent_t* e : {&begin, &end, &joined}) check(cudaEventCreate(e), "cudaEventCreate");
        check(cudaMalloc(&device, bytes), "cudaMalloc");
        check(cudaMalloc(&result, sizeof *result), "cudaMalloc");
        check(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault), "cudaHostAlloc");
        check(cudaHostAlloc(&ring, bytes, cudaHostAllocDefault), "cudaHostAlloc");
        std::memset(pinned, 1, bytes);
    }
    /// Returns ms per call for `times` calls that are enqueued while the stream is held.
    template <class Enqueue>
    f64 time_of(u32 times, const Enqueue& enqueue) {
        if (holds) held.hold(one);
        check(cudaEventRecord(begin, one), "cudaEventRecord");
        check(cudaStreamWaitEvent(other, begin, 0), "cudaStreamWaitEvent");
        for (u32 k = 0; k < times; ++k) enqueue();
        check(cudaEventRecord(joined, other), "cudaEventRecord");
        check(cudaStreamWaitEvent(one, joined, 0), "cudaStreamWaitEvent");
        check(cudaEventRecord(end, one), "cudaEventRecord");
        held.release();
        check(cudaEventSynchronize(end), "what was measured");
        f32 ms = 0;
        check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        return static_cast<f64>(ms) / times;
    }
    /// Returns GB/s for `moved` bytes per call.
    template <class Enqueue>
    f64 rate_of(u64 moved, u32 times, const Enqueue& enqueue) {
        return static_cast<f64>(moved) / time_of(times, enqueue) / 1e6;
    }
    void copy(void* to, const void* from, u64 n, cudaStream_t s) const {
        check(cudaMemcpyAsync(to, from, n, cudaMemcpyDefault, s), "cudaMemcpyAsync");
    }
};

struct subject {
    shared_row* row = nullptr;
    void* at = nullptr;
    bool on_host = false;
    std::vector<f64> column[columns], by_size[std::size(sizes)];
};

/// Makes one cycle of offsets through all cache lines, in an order that no prefetcher predicts. The cycle is
/// made once and copied to each memory.
void make_ring(const bench_tools& t) {
    std::vector<u32> order(t.bytes / line);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    auto* const words = static_cast<u32*>(t.ring);
    for (std::size_t k = 0; k < order.size(); ++k)
        words[order[k] * (line / 4)] = order[(k + 1) % order.size()] * static_cast<u32>(line);
}

void measure_round(bench_tools& t, subject& s) {
    const u64 n = t.bytes, half = n / 2;
    auto* const across =
        static_cast<char*>(s.on_host ? t.device : t.pinned);  // memory at the other end of the bus
    auto* const at = static_cast<char*>(s.at);
    const u32 few = 4, many = s.on_host ? 4 : 16;
    char *const to_gpu_from = s.on_host ? at : across, *const to_gpu = s.on_host ? across : at;
    u32 c = 0;
    const auto add = [&](f64 v) { s.column[c++].push_back(v); };
    add(t.rate_of(n, few, [&] { t.copy(to_gpu, to_gpu_from, n, t.one); }));
    add(t.rate_of(n, few, [&] { t.copy(to_gpu_from, to_gpu, n, t.one); }));
    add(t.rate_of(n, few, [&] {
        t.copy(to_gpu, to_gpu_from, half, t.one);
        t.copy(to_gpu_from + half, to_gpu + half, half, t.other);
    }));
    add(t.rate_of(n, many, [&] { t.copy(t.device, at, n, t.one); }));
    add(t.rate_of(n, many, [&] { copy_all(t.device, at, n, t.one); }));
    add(t.rate_of(n, many, [&] { read_all(at, n, t.result, t.one); }));
    add(t.rate_of(n, many, [&] { write_all(at, n, 7, t.one); }));
    for (std::size_t k = 0; k < std::size(sizes) && sizes[k] <= n; ++k)
        s.by_size[k].push_back(
            t.rate_of(sizes[k], 2 * many, [&] { read_all(at, sizes[k], t.result, t.one); }));
    check(cudaMemcpy(at, t.ring, n, cudaMemcpyDefault), "creating a pointer ring");
    add(1e6 / steps * t.time_of(1, [&] { chase(at, steps, t.result, t.one); }));
}
void warm_up(bench_tools& t) {
    make_ring(t);
    check(cudaMemcpy(t.device, t.ring, t.bytes, cudaMemcpyDefault), "creating a pointer ring");
    chase(t.device, 1, t.result, t.one);
    read_all(t.device, t.bytes, t.result, t.one), write_all(t.device, t.bytes, 7, t.one);
    copy_all(t.device, t.device, t.bytes, t.one), fill(t.device, t.bytes, 1, t.one);
    (void)wrong_words(t.device, t.bytes, 1);
    check(cudaDeviceSynchronize(), "the first kernels");
}
/// Checks that data is unchanged after a copy to the memory and back. Then a kernel fills the memory with
/// data that the owner checks afterwards.
bool moves_well(const bench_tools& t, void* at) {
    auto* const words = static_cast<u32*>(t.pinned);
    const u64 n = t.bytes / 4;
    for (u64 k = 0; k < n; ++k) words[k] = static_cast<u32>(k * 7);
    check(cudaMemcpy(at, t.pinned, t.bytes, cudaMemcpyDefault), "a copy there");
    std::memset(t.pinned, 0, t.bytes);
    check(cudaMemcpy(t.pinned, at, t.bytes, cudaMemcpyDefault), "a copy back");
    bool well = true;
    for (u64 k = 0; k < n; ++k) well = well && words[k] == static_cast<u32>(k * 7);
    fill(at, t.bytes, readers_seed, t.one);
    check(cudaStreamSynchronize(t.one), "the last writing");
    return well && wrong_words(at, t.bytes, readers_seed) == 0;
}
void conclude(subject& s) {
    for (u32 c = 0; c < columns; ++c) s.row->column[c] = median_of(s.column[c]);
    for (std::size_t k = 0; k < std::size(sizes); ++k) s.row->by_size[k] = median_of(s.by_size[k]);
}

/// Adds one row for memory that the reader itself owns, in each place: on the reader's device, on the other
/// device, and on the host.
void add_own(std::vector<subject>& all, board& b, const bench_tools& t, int on, u32 rounds) {
    std::vector<f64> open_us, close_us;
    check(cudaSetDevice(on), "cudaSetDevice");
    void* at = nullptr;
    for (u32 k = 0; k < rounds; ++k) {
        u64 begin = now_ns();
        check(cudaMalloc(&at, t.bytes), "cudaMalloc");
        open_us.push_back(static_cast<f64>(now_ns() - begin) / 1000);
        begin = now_ns();
        check(cudaFree(at), "cudaFree");
        close_us.push_back(static_cast<f64>(now_ns() - begin) / 1000);
    }
    check(cudaMalloc(&at, t.bytes), "cudaMalloc");
    check(cudaSetDevice(0), "cudaSetDevice");
    b.own.open_us = median_of(open_us), b.own.close_us = median_of(close_us);
    all.push_back({&b.own, at, false, {}, {}});
    if (on != 0) return;  // host memory does not depend on the device, so it is measured only once
    check(cudaHostAlloc(&at, t.bytes, cudaHostAllocMapped), "cudaHostAlloc");
    all.push_back({&b.host, at, true, {}, {}});
}
/// Opens and closes the memory several times, then leaves it open.
std::optional<subject> open_kind(board& b, kind k, u64 bytes, int fd, u32 rounds) {
    shared_row& row = b.rows[static_cast<u32>(k)];
    if (row.why[0] != 0) return std::nullopt;
    try {
        std::vector<f64> open_us, map_us, close_us;
        for (u32 n = 0; n < rounds; ++n) {
            opened o = gpu::open(k, bytes, b.tickets[static_cast<u32>(k)], fd);
            open_us.push_back(o.open_us), map_us.push_back(o.map_us);
            close_us.push_back(gpu::close(k, bytes, o));
        }
        const opened o = gpu::open(k, bytes, b.tickets[static_cast<u32>(k)], fd);
        row.open_us = median_of(open_us), row.map_us = median_of(map_us), row.close_us = median_of(close_us);
        row.verified = wrong_words(o.at, bytes, owners_seed) == 0;
        return subject{&row, o.at, k == kind::memfd, {}, {}};
    } catch (const error& e) {
        copy_reason(row.why, e.what());
        return std::nullopt;
    }
}

int reader(board& b, int own_on, u64 bytes, u32 rounds, int socket) {
    if (!wait_for(b.step, 1)) return 1;
    check(cudaSetDevice(0), "cudaSetDevice");
    if (own_on != 0) check(cudaDeviceEnablePeerAccess(own_on, 0), "cudaDeviceEnablePeerAccess");
    bench_tools t(bytes);
    warm_up(t);
    std::vector<subject> all;
    all.reserve(kinds + 2);
    add_own(all, b, t, own_on, rounds);
    for (u32 k = 0; k < kinds; ++k) {
        shm::message m;
        if (shm::receive_message(socket, m, patience_ns) != shm::receive_status::ok) return 1;
        if (const auto s =
                open_kind(b, static_cast<kind>(k), bytes, m.fds.empty() ? -1 : m.fds[0].get(), rounds))
            all.push_back(*s);
    }
    b.own.verified = b.host.verified = 1;
    for (u32 k = 0; k <= rounds; ++k, t.holds = true)
        for (subject& s : all) {
            measure_round(t, s);
            if (t.holds) continue;
            for (auto& c : s.column) c.clear();
            for (auto& c : s.by_size) c.clear();
        }
    for (subject& s : all) {
        conclude(s);
        s.row->verified = moves_well(t, s.at) && s.row->verified;
    }
    b.step = 2;
    return 0;
}

gpu_memory_row row_from(const shared_row& t, const std::string& kind, const std::string& on, u64 bytes,
                        f64 own) {
    const f64* const c = t.column;
    gpu_memory_row row{kind, on,   bytes, c[0], c[1], c[2], c[3], c[4], c[5],
                       c[6], c[7], 0,     0,    0,    0,    {},   false};
    row.open_us = t.open_us, row.map_us = t.map_us, row.close_us = t.close_us;
    for (std::size_t k = 0; k < std::size(sizes); ++k)
        if (t.by_size[k] > 0) row.sizes.emplace_back(static_cast<f64>(sizes[k]), t.by_size[k]);
    row.ratio = own > 0 ? row.read / own : 0, row.verified = t.verified != 0;
    return row;
}
/// Runs the owner on `device` and the reader on the first GPU.
void measure_place(int device, u64 bytes, const ipc_bench_options& o, gpu_result& r) {
    const std::string on = device == 0 ? "same GPU" : "peer GPU";
    const shared_with_children<board> b;
    const auto sockets = shm::socket_pair();
    const auto start_process = [&](const auto& work) {
        return start_child([&] {
            try {
                return work();
            } catch (const error& e) {
                std::string(e.what()).copy(b->why, sizeof b->why - 1);
                return 1;
            }
        });
    };
    const pid_t makes = start_process([&] { return owner(*b, device, bytes, sockets.first.get()); });
    const pid_t reads =
        start_process([&] { return reader(*b, device, bytes, o.rounds, sockets.second.get()); });
    const bool well = end_child(reads);
    if (!well) b->step = 2;
    if (!end_child(makes) || !well) {
        r.missing["memory, " + on] = b->why[0] != 0 ? b->why : "a process of the benchmark did not finish";
        return;
    }
    r.memory.push_back(row_from(b->own, "own memory", on, bytes, b->own.column[5]));
    for (u32 k = 0; k < kinds; ++k) {
        const bool host = static_cast<kind>(k) == kind::memfd;
        if (host && device != 0) continue;
        if (host)
            r.memory.push_back(row_from(b->host, "own pinned memory", "host", bytes, b->host.column[5]));
        if (b->rows[k].why[0] != 0) {
            r.missing[std::string(name_of(static_cast<kind>(k))) + ", " + on] = b->rows[k].why;
            continue;
        }
        gpu_memory_row row = row_from(b->rows[k], name_of(static_cast<kind>(k)), host ? "host" : on, bytes,
                                      host ? b->host.column[5] : b->own.column[5]);
        row.verified = row.verified && b->wrong[k] == 0;
        r.memory.push_back(row);
    }
}

}  // namespace

void measure_gpu_memory(const ipc_bench_options& o, ipc_bench_result& r,
                        const progress_function& report_progress) {
    const gpu_info before = query_gpus();
    if (before.devices == 0) {
        r.gpu.missing["gpu"] = before.why;
        return;
    }
    record_gpu(before, true, r.gpu);
    const u64 bytes = o.quick ? u64{64} << 20U : u64{256} << 20U;
    report_progress("GPU memory, the same GPU");
    measure_place(0, bytes, o, r.gpu);
    if (before.devices > 1 && before.peers) {
        report_progress("GPU memory, a peer GPU");
        measure_place(1, bytes, o, r.gpu);
    } else {
        r.gpu.missing["memory, peer GPU"] =
            before.devices > 1 ? "the first two GPUs have no peer access" : "only one GPU here";
    }
    record_gpu(query_gpus(), false, r.gpu);
}

}  // namespace carousel::bench
