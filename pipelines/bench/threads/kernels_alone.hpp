#pragma once
// What a pipeline's stages cost by themselves on a device: the bound that no pipeline of them passes by much.
// Each frame's work of all stages goes into one queue, in the order of the file; no thread waits for another
// stage, no ring, no words. Two figures: the device time of a frame that is alone, and frames a second where
// frames follow each other without a gap, in one queue or in several at once, whichever is faster.

#include "bench/threads/thread_pipeline.hpp"

namespace carousel::bench {

struct kernel_figures {
    f64 lone_ms = 0;            ///< median: from the first kernel's begin to the last one's end
    f64 frames_per_second = 0;  ///< the best of 1, 2 and 4 queues
    u32 queues = 0;             ///< so many made it
    f64 cpu_ms_per_frame = 0;   ///< of all threads, there
};

/// Of `o`: device, threads, runtime_directory, and `seconds` for each number of queues. Stages with instances
/// work with one. Throws as run_in_threads() does.
[[nodiscard]] kernel_figures measure_kernels_alone(const supervisor::pipeline& p, const thread_order& o);

}  // namespace carousel::bench
