#pragma once
// Work of a stage that runs on the CPU. It is enqueued like a GPU's: process() returns at once, the queue's
// worker does the frames' tasks in order, with all threads of the pool for parallel loops.
//
//   carousel::cpu::for_each_row(f, height, [=](u64 y) { ... });

#include <functional>
#include <utility>

#include <carousel/stage.hpp>
#include "device/cpu/pool.hpp"
#include "stages/sdk/process_call.hpp"

namespace carousel::cpu {

/// The threads of the queue: size(), parallel_for(count, grain, body(begin, end, worker)).
using device::cpu::pool;

/// The frame's queue. Throws config_error when the stage runs on a GPU (description::device says where it
/// can).
inline device::queue& queue(frame& f) {
    if (f.queue().kind() != device_kind::cpu)
        throw config_error(
            "this stage enqueues work for the CPU, but it runs on a GPU: give it device = \"cpu\", and say "
            "runs_on::cpu in configure()");
    return f.queue();
}

/// Runs task(pool&) after all that was enqueued before. It runs later, in another thread: capture values, not
/// references. A reference to a variable of process() is refused by a config_error when process() enqueues
/// the task, unless the task also captures values that are not trivially copyable (a std::string). An
/// exception of the task ends the process, as one of process() does.
template <typename Task>
void enqueue(frame& f, Task task) {
    detail::check_captures(task);
    queue(f).submit(std::function<void(pool&)>(std::move(task)));
}

/// Enqueues body(k) for each k < count, on all threads, `grain` of them at a time.
template <typename Body>
void for_each(frame& f, u64 count, u64 grain, Body body) {
    enqueue(f, [count, grain, body = std::move(body)](pool& threads) {
        threads.parallel_for(count, grain, [&](u64 begin, u64 end, unsigned) {
            for (u64 k = begin; k < end; ++k) body(k);
        });
    });
}

/// Enqueues body(y) for each row of a picture: enough work for a task of its own.
template <typename Body>
void for_each_row(frame& f, u64 rows, Body body) {
    for_each(f, rows, 1, std::move(body));
}

}  // namespace carousel::cpu
