#pragma once
// One measured run of a pipeline, started as a user starts it: BUILD/carousel run FILE --report R ... Figures
// are of a window that begins when frames flow and the warm-up is over, so that neither the start of
// processes nor of GPU contexts is in them.
//
// frames/s, CPU and counted latencies come from `carousel ps --json` at both ends of the window; lost,
// repeated and torn frames and deaths from the report. An older build's ps has no counts of latencies: then
// they are the report's, of the whole run.

#include <functional>
#include <string>
#include <vector>

#include "bench/statistics.hpp"
#include "os/interrupts.hpp"

namespace carousel::bench {

struct run_order {
    std::string programs;  ///< folder of the build's programs
    std::string file;
    std::vector<std::string> words;  ///< further words of `carousel run`
    f64 warm_up_s = 1, seconds = 5;
    u64 frames = 0;  ///< the window lasts until so many frames, however long; 0: by time
};

struct run_figures {
    f64 frames_per_second = 0, p50_ms = 0, p99_ms = 0, cpu_ms_per_frame = 0;
    f64 whole_p50_ms = 0, whole_p99_ms = 0;                    ///< of the whole run, its start included
    f64 memory_bytes = 0, resident_bytes = 0, gpu_bytes = -1;  ///< gpu_bytes < 0: nobody tells
    bool latency_of_window = false;  ///< false: p50_ms and p99_ms are those of the whole run
    u64 frames = 0;
    f64 seconds = 0;
};

/// Ctrl-C, while a run was under way; the run has been ended.
struct interrupted {};

/// What `carousel run --dry-run` says. Throws error with the build's own message and exit code.
[[nodiscard]] std::string dry_run(const run_order& o);

/// Throws error: the run could not be started, had deaths, lost frames, or ended by itself: what it said, and
/// its exit code.
[[nodiscard]] run_figures measure_run(const run_order& o, supervisor::interrupts& ctrl_c);

/// The baseline without isolation: carousel-bench-threads in place of `carousel run`. Throws error: what it
/// said.
[[nodiscard]] run_figures measure_threads(const run_order& o, supervisor::interrupts& ctrl_c);

/// The bound: the stages' work by itself, as carousel-bench-threads measures it (threads/kernels_alone.hpp).
struct reported_kernel_figures {
    f64 lone_ms = 0, frames_per_second = 0, cpu_ms_per_frame = 0;
    u32 queues = 0;
};
/// Throws error as measure_threads() does. Of `o`: programs, file, words, and a part of the measured time.
[[nodiscard]] reported_kernel_figures measure_bound(const run_order& o, supervisor::interrupts& ctrl_c);

/// The folder in which `carousel` lies: BUILD itself, or BUILD/bin of an installed prefix. Throws
/// config_error.
[[nodiscard]] std::string programs_of(const std::string& build);

/// What one look at a running pipeline tells, from `carousel ps --json`.
struct sample {
    i32 supervisor_pid = 0;
    u64 frames = 0;  ///< delivered by every sink
    f64 uptime_s = 0;
    bool tries = false;  ///< a stage still tries how to reach rings on another GPU: its pace is no figure yet
    bool counts_latency = false;
    std::vector<std::vector<counted_range>> latencies;  ///< of each sink
};
/// Throws nlohmann::json::exception on what is no such answer.
[[nodiscard]] sample read_sample(const std::string& ps_json);

}  // namespace carousel::bench
