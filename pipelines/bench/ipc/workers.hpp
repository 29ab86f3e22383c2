#pragma once
// Processes and threads that run the same operation concurrently, and shared memory for their results.

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <new>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::bench {

/// A T in memory shared with children of this process; zero-initialized.
template <class T>
class shared_with_children {
public:
    shared_with_children() {
        void* at = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw shm_error("memory for the bench's processes can't be mapped");
        it_ = new (at) T;
    }
    ~shared_with_children() { ::munmap(it_, sizeof(T)); }
    shared_with_children(const shared_with_children&) = delete;
    shared_with_children& operator=(const shared_with_children&) = delete;
    T* operator->() const { return it_; }
    T& operator*() const { return *it_; }

private:
    T* it_;
};

/// Runs `body` in a child and returns its pid. The child exits with the result of `body`, or with 1 if `body`
/// throws, and is killed after time_limit_s.
[[nodiscard]] pid_t start_child(const std::function<int()>& body, u32 time_limit_s = 60);
/// Waits until the child ends. Returns true only for exit code 0.
bool end_child(pid_t pid);

/// Runs operations until `stop` is not 0; returns their number.
using worker_loop = std::function<u64(const std::atomic<u32>& stop)>;
/// Called once in each process (or thread) before the clock starts: opens what the loop needs.
using worker_setup = std::function<worker_loop(u32 worker)>;

struct round_result {
    u64 operations = 0;
    f64 seconds = 0;
    bool well = false;  ///< every worker has finished
};
/// Runs `number` workers concurrently for `ms`.
[[nodiscard]] round_result run_round(bool processes, u32 number, u32 ms, const worker_setup& setup);

}  // namespace carousel::bench
