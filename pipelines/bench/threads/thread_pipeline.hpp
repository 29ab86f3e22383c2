#pragma once
// The baseline without isolation: the shipped stages of a pipeline as threads of one process and one context,
// as a program would be written that needs no stage to survive another. A stage has a queue per instance, a
// thread that enqueues, and a thread that finishes; queues wait for each other on the device. The same
// classes, formats, buffers per ring and frames in flight as in a run. No ring words, no ledger, no
// deadlines, no recovery: a fault of one stage ends all. It exists to be measured against, and is no way to
// run a pipeline.

#include <functional>
#include <string>

#include "device/backend.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::bench {

struct thread_order {
    device::device_id device;
    unsigned cpu_threads = 0;  ///< of the pool that all stages share; 0: all cores
    f64 warm_up_s = 1, seconds = 5;
    f64 patience_s = 60;  ///< without a frame: then a stage is stuck
    u64 frames = 0;       ///< the window lasts until so many frames, however long; 0: by time
    u64 exactly = 0;      ///< not 0: this many frames from 0 on, then the end; `image_hash` is told
    std::string runtime_directory = ".";
    std::function<void()> before_the_end = {};  ///< called when all is measured and everything still runs
};

struct thread_figures {
    u64 frames = 0;
    f64 seconds = 0, p50_ms = 0, p99_ms = 0, cpu_ms_per_frame = 0;
    std::string image_hash;  ///< of the first sink, as a run's report has it; empty unless `exactly` asks
};

/// Throws config_error: a stage that isn't shipped, an answer of configure() that refuses; what stages throw;
/// error with the culprit's name when no frame comes through for patience_s: then threads still run, and the
/// process is to be ended by _exit.
[[nodiscard]] thread_figures run_in_threads(const supervisor::pipeline& p, const thread_order& o);

}  // namespace carousel::bench
