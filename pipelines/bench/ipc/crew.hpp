#pragma once
// Processes that are started once and measured many times, because their set-up (a CUDA context) takes longer
// than a round. Processes that a round does not use sleep. Every wait has a timeout, and a late process is
// killed together with all others.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/ipc/workers.hpp"

namespace carousel::bench {

/// The work of one worker in a round.
struct crew_work {
    u64 operations = 0;
    u64 timed_ns = 0;  ///< sum of the durations of its operations
};

/// A worker's implementation, created in its own process.
class crew_worker {
public:
    virtual ~crew_worker() = default;
    /// Runs operations until `stop` is not 0. `what` and `count` have the meaning that they have in
    /// crew::round().
    virtual crew_work run(u32 what, u32 count, const std::atomic<u32>& stop) = 0;
    /// Called when all workers have stopped: takes out the remaining elements, and adds up what was put in
    /// and taken out; the sums over all workers must be equal.
    virtual void settle(u32 what, u64& in, u64& out) = 0;
};

struct crew_round {
    u64 operations = 0, timed_ns = 0;
    f64 seconds = 0;
    bool right = false;  ///< the number of elements taken out equals the number put in
};

/// Timeouts for the slowest worker.
struct crew_patience {
    u64 start_ns = 40'000'000'000, round_ns = 8'000'000'000, end_ns = 4'000'000'000;
};

class crew {
public:
    /// Starts the workers; `make` is called in each process. They end with this object, and after
    /// time_limit_s at the latest.
    crew(u32 number, u32 time_limit_s, const std::function<std::unique_ptr<crew_worker>(u32 worker)>& make,
         const crew_patience& patience = {});
    ~crew();
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

    /// Waits with a timeout until all workers are ready. Returns false on failure, see why().
    [[nodiscard]] bool ready();
    /// Runs the first `active` workers for `ms`. Returns nullopt on failure, see why(); no further round is
    /// possible then.
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
