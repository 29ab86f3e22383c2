#pragma once
// One measured run of a pipeline, and the cost of its processes.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/statistics.hpp"
#include "core/types.hpp"
#include "os/event_loop.hpp"

namespace carousel::bench {

// The cost of processes, read from /proc. A run consists of its supervisor and all its descendants.

/// Returns `root` and all its current descendants.
[[nodiscard]] std::vector<i32> family_of(i32 root);

/// Returns the CPU time of each process in ns, user and system, of all its threads. Omits processes that have
/// exited.
[[nodiscard]] std::map<i32, u64> cpu_ns_of(const std::vector<i32>& pids);
/// Returns the CPU time in ns used since `before`; a process that is not in `before` counts from its start.
[[nodiscard]] u64 cpu_ns_since(const std::map<i32, u64>& before, const std::map<i32, u64>& now);

struct memory_figures {
    u64 resident = 0;      ///< sum of the resident sets: memory shared by n processes counts n times
    u64 proportional = 0;  ///< sum of PSS: shared memory counts once; 0 if the kernel does not report PSS
};
[[nodiscard]] memory_figures memory_of(const std::vector<i32>& pids);

/// Returns the bytes in use on all GPUs of this machine according to nvidia-smi; negative if there is none.
[[nodiscard]] f64 gpu_bytes_in_use();

// One measured run of a pipeline, started as a user starts it: BUILD/carousel run FILE --report R ... Figures
// refer to a window that begins when frames flow and the warm-up is over, so that they exclude the start of
// processes and GPU contexts.
// frames/s, CPU time and latency histograms come from `carousel ps --json` at both ends of the window; lost,
// repeated and torn frames and deaths come from the report. The `carousel ps` of an older build prints no
// latency histograms; for such a build the latencies come from the report and refer to the whole run.

/// A private folder that is removed with this object.
class scratch_folder {
public:
    /// `pattern`: name in the folder of temporary files; ends in XXXXXX. Throws output_error.
    explicit scratch_folder(const char* pattern);
    ~scratch_folder();
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

struct run_order {
    std::string programs;  ///< folder of the build's programs
    std::string file;
    std::vector<std::string> words;  ///< further arguments of `carousel run`
    f64 warm_up_s = 1, seconds = 5;
    u64 frames = 0;  ///< the window lasts until N frames have been delivered, without a time limit; 0: the
                     ///< window has a fixed duration
};

struct run_figures {
    f64 frames_per_second = 0, p50_ms = 0, p99_ms = 0, cpu_ms_per_frame = 0;
    f64 whole_p50_ms = 0, whole_p99_ms = 0;                    ///< latencies of the whole run, including its
                                                               ///< start
    f64 memory_bytes = 0, resident_bytes = 0, gpu_bytes = -1;  ///< gpu_bytes < 0: unknown
    bool latency_of_window = false;  ///< false: p50_ms and p99_ms refer to the whole run
    u64 frames = 0;
    f64 seconds = 0;
};

/// Thrown on Ctrl-C during a run, after the run has been ended.
struct interrupted {};

/// Returns the output of `carousel run --dry-run`. Throws error with the build's own message and exit code.
[[nodiscard]] std::string dry_run(const run_order& o);

/// Throws error if the run could not be started, had deaths, lost frames, or ended by itself; the error has
/// the run's message and exit code.
[[nodiscard]] run_figures measure_run(const run_order& o, supervisor::interrupts& ctrl_c);

/// The baseline without isolation: runs carousel-bench-threads instead of `carousel run`. Throws error with
/// the program's message.
[[nodiscard]] run_figures measure_threads(const run_order& o, supervisor::interrupts& ctrl_c);

/// The bound: the stages' work alone, as carousel-bench-threads measures it (threads/thread_pipeline.hpp).
struct reported_kernel_figures {
    f64 lone_ms = 0, frames_per_second = 0, cpu_ms_per_frame = 0;
    u32 queues = 0;
};
/// Uses the programs, the file and the arguments of `o`. The measurement takes only a part of the time that a
/// run takes. Throws error like measure_threads().
[[nodiscard]] reported_kernel_figures measure_bound(const run_order& o, supervisor::interrupts& ctrl_c);

/// Returns the folder that contains `carousel`: BUILD itself, or BUILD/bin of an installed prefix. Throws
/// config_error.
[[nodiscard]] std::string programs_of(const std::string& build);

/// The state of a running pipeline at one instant, from `carousel ps --json`.
struct sample {
    i32 supervisor_pid = 0;
    u64 frames = 0;  ///< delivered by every sink
    f64 uptime_s = 0;
    bool tries = false;  ///< a stage is still trying ways to reach rings on another GPU, so the measured rate
                         ///< is not yet valid
    bool counts_latency = false;
    std::vector<std::vector<counted_range>> latencies;  ///< per sink
};
/// Throws nlohmann::json::exception if the text is not such a reply.
[[nodiscard]] sample read_sample(const std::string& ps_json);

}  // namespace carousel::bench
