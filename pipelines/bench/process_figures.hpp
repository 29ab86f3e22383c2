#pragma once
// The cost of processes, read from /proc. A run consists of its supervisor and all its descendants.

#include <map>
#include <vector>

#include "core/types.hpp"

namespace carousel::bench {

/// Returns `root` and all its current descendants.
[[nodiscard]] std::vector<i32> family_of(i32 root);

/// Returns the CPU time of each process in ns, user and system, of all its threads. Omits processes that have
/// exited.
[[nodiscard]] std::map<i32, u64> cpu_ns_of(const std::vector<i32>& pids);
/// Returns the CPU time in ns used since `before`; a process that is not in `before` counts from its start.
[[nodiscard]] u64 cpu_ns_since(const std::map<i32, u64>& before, const std::map<i32, u64>& now);

struct memory_figures {
    u64 resident = 0;      ///< sum of the resident sets: memory shared by n processes counts n times
    u64 proportional = 0;  ///< sum of PSS: shared memory counts once; 0 if the kernel does not report it
};
[[nodiscard]] memory_figures memory_of(const std::vector<i32>& pids);

/// Returns the bytes in use on all GPUs of this machine according to nvidia-smi; negative if there is none.
[[nodiscard]] f64 gpu_bytes_in_use();

}  // namespace carousel::bench
