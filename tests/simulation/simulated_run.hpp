#pragma once
// A whole run on a simulated machine, from one seed: the plan, the faults and their times. The supervisor's
// engine is the product's, its stages are simulated_stage. After the last fault everything that was taken
// from the run is given back, and the run must complete.
//
// The programs of ports are attached by the simulation: one leaves or is killed, another one follows.
//
// A supervisor may die, also between two of its steps (crash_point.hpp). Its processes continue, and the next
// supervisor takes the run over; of two that start at once, one is refused. If no process is left, the run is
// lost, and only what it leaks is judged.
//
// Oracles. Safety: no frame is lost, repeated or torn, no process, descriptor, slot or entry is leaked.
// Liveness: frames advance within a bound of simulated time, unless the simulation itself withholds something
// (a paused stage, a full disk, ...), and the run ends with exit code 0 after the last fault.

#include <deque>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::test {

/// The kinds of faults and commands, in the order of the names in simulated_faults.cpp.
enum class simulated_fault : u8 {
    kill,             ///< SIGKILL from outside
    crash,            ///< SIGSEGV of its own, after it has delivered frames
    exit,             ///< exit code 1 of its own, after it has delivered frames
    hang,             ///< process() of its next frame does not return
    stop,             ///< SIGSTOP from outside, SIGCONT later
    pause,            ///< `carousel stop`, `carousel cont` later
    restart,          ///< `carousel restart`
    down,             ///< `carousel down STAGE`, `carousel up STAGE` later
    kill_command,     ///< `carousel kill STAGE`
    full_disk,        ///< for a while
    no_process,       ///< no process can be started for a while
    stop_supervisor,  ///< SIGSTOP of the supervisor, SIGCONT later
    rebuild,          ///< the request to rebuild memory and words
    fail,             ///< processes of an optional stage can't start, so it fails; `carousel up STAGE` later
    leave,            ///< the program of a port leaves
    lose,             ///< messages of the other host are lost, or its sender dies
    kill_supervisor,  ///< SIGKILL of the supervisor, at once or at a crash point; another one follows, or two
};
inline constexpr u8 simulated_faults = 17;

struct simulated_run_options {
    u64 seed = 1;
    /// bit k: faults of kind k may happen
    u32 faults = (1U << simulated_faults) - 1;
    /// The supervisor may die in every plan that another one can take over, and two of three faults are its
    /// death.
    bool takes_over = false;
};

struct simulated_run_result {
    std::vector<std::string> violations;
    std::deque<std::string> trace;
    u64 trace_hash = 0;
    std::string plan;  ///< what the seed has chosen
    u64 simulated_ns = 0, commits = 0, helped = 0, faults = 0, processes = 0, standbys = 0, started_over = 0,
        tombstones = 0, disk_waits = 0, rebuilds = 0, programs = 0, returns = 0, links = 0, takeovers = 0,
        refused = 0, lost_runs = 0;
    u32 faults_of[simulated_faults] = {};
    /// The seed, the plan, the violations and the end of the trace.
    [[nodiscard]] std::string text(std::size_t lines = 40) const;
};

[[nodiscard]] simulated_run_result simulate_run(const simulated_run_options& o);

}  // namespace carousel::test
