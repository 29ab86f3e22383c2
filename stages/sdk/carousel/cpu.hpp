#pragma once
// Work of a stage that runs on the CPU. Work is enqueued in the same way as GPU work: process() returns at
// once, and the queue's worker thread runs the frames' tasks in order, using all threads of the pool for
// parallel loops.
//
//   carousel::cpu::for_each_row(f, height, [=](u64 y) { ... });

#include <functional>
#include <utility>

#include <carousel/stage.hpp>
#include "device/cpu/pool.hpp"
#include "stages/sdk/process_call.hpp"

namespace carousel::cpu {

/// The queue's thread pool: size(), parallel_for(count, grain, body(begin, end, worker)).
using device::cpu::pool;

/// Returns the frame's queue. Throws config_error if the stage runs on a GPU (description::device states
/// where it can run).
inline device::queue& queue(frame& f) {
    if (f.queue().kind() != device_kind::cpu)
        throw config_error(
            "this stage enqueues work for the CPU, but it runs on a GPU: set device = \"cpu\", and "
            "runs_on::cpu in configure()");
    return f.queue();
}

/// Enqueues task(pool&). The task runs later, in another thread, after all work that was enqueued before it;
/// so the task must capture values, not references. A task that captures a reference to a variable of
/// process() is refused with a config_error when process() enqueues it; this check is omitted if the task
/// also captures a value that is not trivially copyable, such as a std::string. An exception from the task
/// ends the process, like one from process().
template <typename Task>
void enqueue(frame& f, Task task) {
    detail::check_captures(task);
    queue(f).submit(std::function<void(pool&)>(std::move(task)));
}

/// Enqueues body(k) for each k < count, on all threads, in chunks of `grain` indices.
template <typename Body>
void for_each(frame& f, u64 count, u64 grain, Body body) {
    enqueue(f, [count, grain, body = std::move(body)](pool& threads) {
        threads.parallel_for(count, grain, [&](u64 begin, u64 end, unsigned) {
            for (u64 k = begin; k < end; ++k) body(k);
        });
    });
}

/// Enqueues body(y) for each row y of an image; one row is one chunk.
template <typename Body>
void for_each_row(frame& f, u64 rows, Body body) {
    for_each(f, rows, 1, std::move(body));
}

}  // namespace carousel::cpu
