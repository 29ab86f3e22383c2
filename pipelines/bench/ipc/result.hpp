#pragma once
// The results of `carousel bench ipc` and their output formats.
// JSON: {rounds, clocks: {processor, mhz_before, mhz_after},
//   memory: [{kind, read_gb_s, write_gb_s, copy_gb_s, chase_ns, open_us, ratio_to_local, sizes: [{bytes,
//   read_gb_s}], verified}],
//   hop_floor_us, hops: [{means, us, p95_us, threads_us, round_trips, verified}], missing: {means: why},
//   primitives: [{primitive, by, workers: "processes" | "threads", number, operations_s, ns, p95_ns,
//   verified}], gpu: {name, clocks: {sm_mhz_before, sm_mhz_after, memory_mhz}, floors: {memory_gb_s,
//   pcie_gb_s, nvlink_gb_s, synced_launch_us, next_kernel_us, two_blocks_us}, missing: {need: why}, memory:
//   [{kind, on: "same GPU" | "peer GPU" | "host", bytes, h2d, d2h, both_ways, device_memcpy,
//   device_copy_kernel, kernel_read, kernel_write (GB/s of bytes moved once; both_ways: their sum), chase_ns,
//   open_us, map_us, close_us, ratio_to_local, sizes: [{bytes, kernel_read}], verified}], hops: [{means,
//   where, us, p95_us, floor_us, ratio, round_trips, verified}], primitives: [{primitive, by, where, number,
//   operations_s, ns, p95_ns, verified}]}}

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "plot/chart.hpp"

namespace carousel::bench {

struct memory_row {
    std::string kind;
    f64 read = 0, write = 0, copy = 0;       ///< GB/s at the largest size; a copy counts both the bytes read
                                             ///< and the bytes written
    f64 chase_ns = 0, open_us = 0;           ///< open_us: time to map the memory, touch it and unmap it
    f64 ratio = 1;                           ///< read rate divided by that of the first row
    std::vector<std::pair<f64, f64>> sizes;  ///< bytes, GB/s
    bool verified = false;
};
struct hop_row {
    std::string means;
    f64 us = 0, p95_us = 0;  ///< one way
    f64 threads_us = 0;      ///< one-way time between two threads of one process; 0: not applicable
    u64 round_trips = 0;
    bool verified = false;
};
struct primitive_row {
    std::string primitive, by;
    bool processes = false;  ///< false: threads of one process
    u32 number = 0;
    f64 operations_s = 0, ns = 0, p95_ns = 0;  ///< ns: duration of one operation of one worker
    bool verified = false;
};

struct gpu_memory_row {
    std::string kind, on;
    u64 bytes = 0;
    /// GB/s; each moved byte counts once; memcpy: the driver copies to the reader's memory
    f64 h2d = 0, d2h = 0, both = 0, memcpy = 0, copy_kernel = 0;
    f64 read = 0, write = 0;  ///< by kernels
    f64 chase_ns = 0, open_us = 0, map_us = 0, close_us = 0;
    f64 ratio = 0;  ///< read rate divided by that of the reader's own memory in the same place
    std::vector<std::pair<f64, f64>> sizes;  ///< size in bytes, and the GB/s at which kernels read that size
    bool verified = false;
};
struct gpu_hop_row {
    std::string means, where;  ///< where: "one process", "time slices", "MPS", "two GPUs"
    f64 us = 0;                ///< one-way time, with a tiny kernel at each end
    f64 p95_us = 0;            ///< 95th percentile of half a round-trip time
    f64 floor_us = 0;  ///< lower bound of `us`: the hardware's time for those steps of a hop that do not
                       ///< cross the process boundary; 0: unknown
    f64 ratio = 0;     ///< `us` divided by the time of the same mechanism within one process
    u64 round_trips = 0;
    bool verified = false;
};
/// Lower bounds of a hop in us, measured by one thread in the same run.
struct gpu_hop_floors {
    f64 synced_launch = 0;  ///< time from launching a tiny kernel until the host has observed its end
    f64 next_kernel = 0;    ///< time from a tiny kernel to the next one in its stream
    f64 two_blocks = 0;     ///< time that a word takes from one block of a kernel to another block
};
struct gpu_primitive_row {
    std::string primitive, by, where;  ///< where: "time slices", "MPS", "one process"
    u32 number = 0;        ///< number of processes; if there is one process: number of its blocks, or of its
                           ///< threads that call CUDA
    f64 operations_s = 0;  ///< of all participants together
    f64 ns = 0, p95_ns = 0;  ///< duration of one operation: the host measures it for pools and for the
                             ///< semaphore in streams; for all others, a thread of the kernel measures it
    bool verified = false;
};
struct gpu_result {
    std::string name;  ///< "": no GPU was found
    f64 sm_mhz_before = 0, sm_mhz_after = 0, memory_mhz = 0;
    f64 memory_floor = 0, pcie_floor = 0, nvlink_floor = 0;  ///< GB/s in one direction; 0: unknown
    gpu_hop_floors hop_floors;
    std::map<std::string, std::string> missing;  ///< need -> why
    std::vector<gpu_memory_row> memory;
    std::vector<gpu_hop_row> hops;
    std::vector<gpu_primitive_row> primitives;
};

struct ipc_bench_result {
    u32 rounds = 0;
    std::string processor;
    f64 mhz_before = 0, mhz_after = 0;  ///< clock rate of the processors, read from the kernel; 0: unknown
    std::vector<memory_row> memory;
    f64 hop_floor_us = 0;  ///< time that a word takes from one processor to another; 0: there is only one
                           ///< processor
    std::vector<hop_row> hops;
    std::map<std::string, std::string> missing;  ///< means -> why
    std::vector<primitive_row> primitives;
    gpu_result gpu;
};

[[nodiscard]] std::string json_of(const ipc_bench_result& r);
[[nodiscard]] std::string table_of(const ipc_bench_result& r);
[[nodiscard]] std::string plot_of(const ipc_bench_result& r);
/// Returns the names of rows whose data was wrong; "" if none.
[[nodiscard]] std::string wrong_rows(const ipc_bench_result& r);

// The GPU part of the report of `carousel bench ipc`. Pure functions.

[[nodiscard]] nlohmann::ordered_json gpu_json(const gpu_result& r);
/// Returns "" if no GPU table was requested.
[[nodiscard]] std::string gpu_table(const gpu_result& r);
/// Plots GB/s over the size as curves, and the times of the hops as bars. A chart without figures has no
/// curves or bars.
[[nodiscard]] plot::chart gpu_memory_plot(const gpu_result& r);
[[nodiscard]] plot::chart gpu_primitive_plot(const gpu_result& r);
[[nodiscard]] plot::bar_chart gpu_hop_plot(const gpu_result& r);

}  // namespace carousel::bench
