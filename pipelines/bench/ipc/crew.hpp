#pragma once
// Processes that are started once and then measured many times, for what they need (a CUDA context) takes
// longer to make than a round. Those that a round doesn't want rest meanwhile. Everything is waited for
// within a bound, and who is late is killed with all others.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/ipc/workers.hpp"

namespace carousel::bench {

/// What one worker has done in a round.
struct crew_work {
    u64 operations = 0;
    u64 timed_ns = 0;  ///< that all of its operations took, each by itself
};

/// A worker's side, made in its process.
class crew_worker {
public:
    virtual ~crew_worker() = default;
    /// One operation after the other until `stop` is not 0. `what`, `count`: as of crew::round.
    virtual crew_work run(u32 what, u32 count, const std::atomic<u32>& stop) = 0;
    /// When all have stopped: takes out what is still to be taken, and adds up what went in and came out;
    /// over all workers these must be equal.
    virtual void settle(u32 what, u64& in, u64& out) = 0;
};

struct crew_round {
    u64 operations = 0, timed_ns = 0;
    f64 seconds = 0;
    bool right = false;  ///< as much came out as went in
};

/// How long is waited for the slowest of them.
struct crew_patience {
    u64 start_ns = 40'000'000'000, round_ns = 8'000'000'000, end_ns = 4'000'000'000;
};

class crew {
public:
    /// Starts them; `make` is called in each. They end with this object, and in any case behind time_limit_s.
    crew(u32 number, u32 time_limit_s, const std::function<std::unique_ptr<crew_worker>(u32 worker)>& make,
         const crew_patience& patience = {});
    ~crew();
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

    /// All are ready, within a bound. False: why().
    [[nodiscard]] bool ready();
    /// The first `active` of them, for `ms`. Nothing: why(), and no further round.
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
