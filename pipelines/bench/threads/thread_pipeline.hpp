#pragma once
// The baseline without isolation: the shipped stages of a pipeline as threads of one process with one
// context, like a program in which no stage has to survive the death of another one. A stage has a queue per
// instance, a thread that enqueues, and a thread that finishes; queues wait for each other on the device. The
// classes, formats, buffers per ring and frames in flight are the same as in a run. There are no ring words,
// no ledger, no deadlines and no recovery, so a fault of one stage ends the process. This baseline exists
// only as a reference for measurements; it is not meant for running pipelines.

#include <functional>
#include <string>

#include "device/backend.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::bench {

struct thread_order {
    device::device_id device;
    unsigned cpu_threads = 0;  ///< number of threads of the pool that all stages share; 0: all cores
    f64 warm_up_s = 1, seconds = 5;
    f64 patience_s = 60;  ///< longest time without a frame before a stage is considered stuck
    u64 frames = 0;       ///< the window lasts until N frames have been delivered, without a time limit; 0:
                          ///< the window has a fixed duration
    u64 exactly = 0;  ///< if not 0: makes this many frames from frame 0 on, then ends and sets `image_hash`
    std::string runtime_directory = ".";
    std::function<void()> before_the_end = {};  ///< called after the measurement, while all stages still run
};

struct thread_figures {
    u64 frames = 0;
    f64 seconds = 0, p50_ms = 0, p99_ms = 0, cpu_ms_per_frame = 0;
    std::string image_hash;  ///< hash of the first sink, as in a run's report; empty unless `exactly` is set
};

/// Runs the pipeline and measures it. Throws config_error for a stage that is not shipped or whose
/// configure() refuses the pipeline; rethrows a stage's exception; throws error with the name of the slowest
/// stage if no frame arrives for patience_s. In the last case threads still run, and the caller must end the
/// process by _exit.
[[nodiscard]] thread_figures run_in_threads(const supervisor::pipeline& p, const thread_order& o);

// The cost of a pipeline's stages alone on a device: this is an upper bound, because no pipeline of these
// stages is much faster. Each frame's work of all stages goes into one queue, in the order of the file,
// without waits between threads, rings or ring words. There are two figures: the device time of a lone frame,
// and the rate of frames that follow each other without a gap, in one queue or in several concurrent queues,
// whichever is faster.

struct kernel_figures {
    f64 lone_ms = 0;            ///< median of the time from the start of a frame's first kernel to the end of
                                ///< its last kernel
    f64 frames_per_second = 0;  ///< the highest rate that 1, 2 or 4 queues reach
    u32 queues = 0;             ///< the number of queues that reach that rate
    f64 cpu_ms_per_frame = 0;   ///< CPU time of all threads, at that rate
};

/// Uses `device`, `cpu_threads`, `runtime_directory` and `seconds` of `o`; `seconds` applies to each number
/// of queues. Stages with several instances run with one instance. Throws like run_in_threads().
[[nodiscard]] kernel_figures measure_kernels_alone(const supervisor::pipeline& p, const thread_order& o);

}  // namespace carousel::bench
