#pragma once
// Layout of a primitive whose words are in the GPU memory of a space. Only kernels change these words.
//
//   queue        head, tail, lost and tombs, each 128 bytes apart; cell words; elements
//   work queue   next free and next waiting, each 128 bytes apart; task words; tasks
//
// The sizes are not stored here: they are in the directory, which only the CPU writes.

#include "ipc/queue_body.hpp"
#include "ipc/task_body.hpp"

namespace carousel::ipc {

inline constexpr u64 gpu_line = 128;  ///< distance in bytes between words that many threads change
inline constexpr u64 gpu_head_bytes = 4 * gpu_line;

[[nodiscard]] constexpr u64 gpu_queue_bytes(u64 capacity, u32 element_bytes) {
    return gpu_head_bytes + capacity * (sizeof(u64) + element_stride(element_bytes));
}

/// Returns the parts of the queue that begins at the address `at`.
[[nodiscard]] inline queue_parts<u64> gpu_queue_at(void* at, u32 capacity, u32 element_bytes) {
    auto* bytes = static_cast<u8*>(at);
    const auto word_at = [bytes](u64 offset) { return reinterpret_cast<u64*>(bytes + offset); };
    queue_parts<u64> q;
    q.head = word_at(0), q.tail = word_at(gpu_line);
    q.lost = word_at(2 * gpu_line), q.tombs = word_at(3 * gpu_line);
    q.cell = word_at(gpu_head_bytes);
    q.elements = bytes + gpu_head_bytes + u64{capacity} * sizeof(u64);
    q.capacity = capacity, q.element_bytes = element_bytes;
    return q;
}

[[nodiscard]] constexpr u64 gpu_work_queue_bytes(u64 capacity, u32 task_bytes) {
    return gpu_head_bytes + capacity * (sizeof(u64) + element_stride(task_bytes));
}

/// Returns the parts of the work queue that begins at the address `at`.
[[nodiscard]] inline task_parts<u64> gpu_work_queue_at(void* at, u32 capacity, u32 task_bytes,
                                                       u32 max_attempts) {
    auto* bytes = static_cast<u8*>(at);
    task_parts<u64> w;
    w.next_free = reinterpret_cast<u64*>(bytes), w.next_waiting = reinterpret_cast<u64*>(bytes + gpu_line);
    w.place = reinterpret_cast<u64*>(bytes + gpu_head_bytes);
    w.tasks = bytes + gpu_head_bytes + u64{capacity} * sizeof(u64);
    w.capacity = capacity, w.task_bytes = task_bytes, w.max_attempts = max_attempts;
    return w;
}

}  // namespace carousel::ipc
