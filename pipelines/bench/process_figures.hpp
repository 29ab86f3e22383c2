#pragma once
// What processes cost, read from /proc: a whole run is its supervisor and everything below it.

#include <map>
#include <vector>

#include "core/types.hpp"

namespace carousel::bench {

/// `root` and all that descend from it now.
[[nodiscard]] std::vector<i32> family_of(i32 root);

/// CPU time of each process, user and system, all its threads. Those that are gone are left out.
[[nodiscard]] std::map<i32, u64> cpu_ns_of(const std::vector<i32>& pids);
/// What the processes have used since `before`; one that wasn't there then counts from its start.
[[nodiscard]] u64 cpu_ns_since(const std::map<i32, u64>& before, const std::map<i32, u64>& now);

struct memory_figures {
    u64 resident = 0;      ///< sum of the resident sets: memory that n processes share counts n times
    u64 proportional = 0;  ///< shared memory counts once (PSS); 0 where the kernel doesn't tell
};
[[nodiscard]] memory_figures memory_of(const std::vector<i32>& pids);

/// Bytes in use on all GPUs of this machine, as nvidia-smi says; negative: there is none.
[[nodiscard]] f64 gpu_bytes_in_use();

}  // namespace carousel::bench
