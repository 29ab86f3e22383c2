#pragma once
// The cost of a pipeline's stages alone on a device: an upper bound that no pipeline of these stages exceeds
// by much. Each frame's work of all stages goes into one queue, in the order of the file, without waits
// between threads, rings or ring words. Two figures: the device time of a lone frame, and the rate of frames
// that follow each other without a gap, in one queue or in several concurrent ones, whichever is faster.

#include "bench/threads/thread_pipeline.hpp"

namespace carousel::bench {

struct kernel_figures {
    f64 lone_ms = 0;            ///< median of the time from the start of the first kernel to the end of the
                                ///< last one
    f64 frames_per_second = 0;  ///< the best of 1, 2 and 4 queues
    u32 queues = 0;             ///< the number of queues with that rate
    f64 cpu_ms_per_frame = 0;   ///< CPU time of all threads, at that rate
};

/// Uses `device`, `cpu_threads`, `runtime_directory` and `seconds` of `o`; `seconds` applies to each number
/// of queues. Stages with several instances run with one instance. Throws like run_in_threads().
[[nodiscard]] kernel_figures measure_kernels_alone(const supervisor::pipeline& p, const thread_order& o);

}  // namespace carousel::bench
