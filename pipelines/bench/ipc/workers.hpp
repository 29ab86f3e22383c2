#pragma once
// Processes and threads that run the same operation concurrently, and shared memory for their results.

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
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

// Processes that are started once and measured many times, because their set-up (a CUDA context) takes longer
// than a round. Processes that a round does not use sleep. Every wait has a timeout, and a late process is
// killed together with all others.

/// The work of one worker in a round.
struct crew_work {
    u64 operations = 0;
    u64 timed_ns = 0;  ///< sum of the durations of the worker's operations
};

/// A worker's implementation, created in its own process.
class crew_worker {
public:
    virtual ~crew_worker() = default;
    /// Runs operations until `stop` is not 0. `what` and `count`: as in crew::round().
    virtual crew_work run(u32 what, u32 count, const std::atomic<u32>& stop) = 0;
    /// Called when all workers have stopped: takes out the remaining elements. Sets `in` to the sum of what
    /// this worker has put in, and `out` to the sum of what it has taken out; over all workers the two totals
    /// must be equal.
    virtual void settle(u32 what, u64& in, u64& out) = 0;
};

struct crew_round {
    u64 operations = 0, timed_ns = 0;
    f64 seconds = 0;
    bool right = false;  ///< the number of elements taken out equals the number put in
};

/// The timeouts: how long to wait for the slowest worker.
struct crew_patience {
    u64 start_ns = 40'000'000'000, round_ns = 8'000'000'000, end_ns = 4'000'000'000;
};

class crew {
public:
    /// Starts the workers; `make` is called in each process. The workers end when this object is destroyed,
    /// but after time_limit_s at the latest.
    crew(u32 number, u32 time_limit_s, const std::function<std::unique_ptr<crew_worker>(u32 worker)>& make,
         const crew_patience& patience = {});
    ~crew();
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

    /// Waits with a timeout until all workers are ready. Returns false on failure, see why().
    [[nodiscard]] bool ready();
    /// Runs the first `active` workers for `ms`. Returns nullopt on failure, see why(); after a failure no
    /// further round is possible.
    [[nodiscard]] std::optional<crew_round> round(u32 what, u32 count, u32 active, u32 ms);
    [[nodiscard]] std::string why() const;

private:
    struct board;
    void serve(board& b, u32 number, crew_worker& w) const;
    [[nodiscard]] bool wait_for(const std::atomic<u32>& word, u32 value, u64 patience_ns, const char* what);
    crew_patience patience_;
    std::unique_ptr<shared_with_children<board>> board_;
    std::vector<pid_t> pids_;
};

}  // namespace carousel::bench
