#pragma once
// Backtraces of processes that died by a signal. A process leaves a record of its stack
// (run/fault_record.hpp); a carousel-backtrace for each record finds the names, and its output goes into the
// log of the stage. Finding names may take seconds, so the supervisor only starts that program and polls it.
// One thread. Only finish() blocks. A supervisor that dies loses the backtraces in progress;
// their programs end with it, or by an alarm of their own.

#include <deque>
#include <optional>
#include <vector>

#include "core/clock.hpp"
#include "os/spawn.hpp"
#include "run/fault_record.hpp"

namespace carousel::supervisor {

struct process;
struct process_table;
struct seat;

class fault_reports {
public:
    fault_reports() = default;
    ~fault_reports();
    fault_reports(const fault_reports&) = delete;
    fault_reports& operator=(const fault_reports&) = delete;

    /// Starts the backtrace of a record, or queues it while several are in progress. If the queue is full,
    /// the log contains only that there is no backtrace. `s` must exist until finish().
    void begin(const seat& s, const run::fault_record& r);
    void tick(u64 now);
    /// Waits until all backtraces are in the log, for at most 11 s; then the log lists the missing ones.
    void finish();

private:
    struct report {
        spawned child;
        const seat* of;
        i32 pid;  ///< the process that died
        shm::unique_fd output;
        u64 until_ns;
        bool timed_out = false;  ///< SIGKILL has been sent
    };
    struct queued {
        const seat* of;
        run::fault_record record;
    };
    void start(const seat& s, const run::fault_record& r);
    static void end(report& r);

    std::vector<report> all_;
    std::deque<queued> queue_;
};

/// Returns the record that the process of that seat has left, if it has ended by a signal.
[[nodiscard]] std::optional<run::fault_record> fault_of(const process_table& t, const process& p);

}  // namespace carousel::supervisor
