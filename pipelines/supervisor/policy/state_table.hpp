#pragma once
// State of one seat as known to the supervisor: an explicit state and one table of (state, event) -> (state,
// action). This code touches no process, so the table can be reviewed and is tested with histories of events.
//
//   starting  a process was spawned and has not yet reported that it is ready
//   running   it has reported that it is ready
//   stopping  it was requested to end for good (`carousel down`, or the end of the run)
//   stopped   paused by `carousel stop`: SIGSTOP, no deadline runs. The pause lasts until `carousel cont`: if
//             the process dies, its successor is paused as soon as it is ready (paused())
//   backoff   its process died by its own fault without having committed a frame; the restart is delayed
//   failed    no further restarts
//   down      ended by `carousel down STAGE` until `carousel up STAGE`
//   vacant    of a port: no program is attached
//   done      every frame of the run has passed it, and its process has exited

#include <string>
#include <vector>

#include "core/types.hpp"
#include "spec/words.hpp"

namespace carousel::supervisor {

enum class seat_state : u8 { starting, running, stopping, stopped, backoff, failed, down, done, vacant };
[[nodiscard]] const char* name_of(seat_state s) noexcept;

enum class seat_event : u8 {
    spawned,        ///< a process was started
    ready,          ///< it is LIVE
    died_outside,   ///< killed from outside, or restarted by a command
    died_fresh,     ///< died by its own fault, before it had committed a frame
    died_exposed,   ///< like died_fresh, but the process died by a signal, and external peers can reach the
                    ///< process
    died_spent,     ///< died by its own fault, after it had committed frames
    died_for_good,  ///< died in a way (exit code, policy) after which the seat is never restarted
    died_refusing,  ///< reported at its start that it cannot run with this configuration (exit code 2)
    finished,       ///< exited after the last frame of the run
    due,            ///< the delay is over
    pause,          ///< `carousel stop`
    resume,         ///< `carousel cont`
    take_down,      ///< `carousel down STAGE`
    vacated,        ///< for a port: the seat is free, and the next program may attach
    bring_up,       ///< `carousel up STAGE`
};

enum class seat_action : u8 {
    none,
    start,    ///< spawn now
    delay,    ///< spawn after seat_machine::delay_ns()
    fail,     ///< the seat has failed
    suspend,  ///< SIGSTOP
    resume,   ///< SIGCONT
    end,      ///< end the process, without a restart
    refuse,   ///< report to the user that the event is invalid in this state
};

inline constexpr u64 first_delay_ns = 100'000'000;
inline constexpr u64 longest_delay_ns = 5'000'000'000;
/// Number of consecutive restarts without a commit after which the seat fails. If external peers can reach
/// the process, a death by a signal never makes the seat fail, because otherwise any peer that can crash the
/// process could end the run.
inline constexpr u32 max_fresh_deaths = 5;

/// Text for the death of a process that was ended because another process had broken their MPS domain.
inline constexpr const char* with_domain_text = "with its MPS domain";

/// Text for the death of a process that was ended either to be tried alone in a separate GPU context, or to
/// return to the domain.
inline constexpr const char* moved_text = "moved into or out of its MPS domain";

/// Text for a death by a signal from outside, shown until the process is reaped; if the process has a GPU
/// context, this takes about 90 ms.
inline constexpr const char* death_by_signal_text = "killed";

/// Known facts of the end of a process.
struct death {
    bool outside = false;  ///< the process was ended by a signal from outside, by `carousel kill` or by
                           ///< `carousel restart`
    bool restart_requested = false;  ///< `carousel restart`: the seat is restarted whatever its policy is
    /// the exit code and the signal below are known: they come from the kernel or from the process itself
    bool known = false;
    int exit_code = 0;  ///< when signal == 0
    int signal = 0;
    bool deadline = false;       ///< killed by the supervisor for a missed deadline
    bool was_ready = false;      ///< the process had reported that it is ready
    u64 commits = 0;             ///< frames this process committed
    bool out_of_memory = false;  ///< the signal came from the kernel's out-of-memory killer
    bool injected = false;       ///< `carousel inject`: counts as a death from outside
    bool through = false;        ///< every frame of the run has passed its stage
    bool may_give_back = false;  ///< the process represents instances on another host: exit_code::gave_back
                                 ///< is not a fault
    bool exposed = false;  ///< external peers can reach the process, because it listens for another host
};
/// Maps a death to the event for the table.
[[nodiscard]] seat_event classify(const death& d, restart_policy policy) noexcept;
/// True if the process ended by its own fault (fault signal, abort, exit, deadline).
[[nodiscard]] bool self_inflicted(const death& d) noexcept;
/// True if the process ended at its start because no thread, process, descriptor or memory was available.
/// Such a death does not count as an attempt of the stage.
[[nodiscard]] bool lacked_resources(const death& d) noexcept;
/// Returns "exit code 3", "signal 11 (SIGSEGV)", "deadline missed", for tables and messages.
[[nodiscard]] std::string describe(const death& d);

class seat_machine {
public:
    [[nodiscard]] seat_state state() const noexcept { return state_; }
    [[nodiscard]] u64 since_ns() const noexcept { return since_ns_; }
    [[nodiscard]] u64 delay_ns() const noexcept { return delay_ns_; }  ///< of the last seat_action::delay
    [[nodiscard]] u32 fresh_deaths() const noexcept { return fresh_deaths_; }
    /// True if a process of the seat has worked. If this is true and a later process cannot be started, a
    /// file must have changed.
    [[nodiscard]] bool proven() const noexcept { return proven_; }
    /// True if `carousel stop` was called, and none of `cont`, `down` and `up` was called after that: the
    /// process, or its successor, is paused.
    [[nodiscard]] bool paused() const noexcept { return paused_; }
    /// Restores the value of a previous supervisor, or of a previous control block.
    void restore_paused(bool paused) noexcept { paused_ = paused; }
    /// Changes the state according to the table; `now` (CLOCK_MONOTONIC, ns) becomes since_ns().
    seat_action on(seat_event e, u64 now) noexcept;
    /// Restores the seat's state from a previous supervisor.
    void resume(seat_state s, u64 since_ns, u32 fresh_deaths, bool proven = false) noexcept {
        state_ = s;
        proven_ = proven_ || proven || s == seat_state::running;
        since_ns_ = since_ns;
        fresh_deaths_ = fresh_deaths;
    }
    /// The present process has committed a frame: resets the count of deaths without a commit.
    void note_commit() noexcept { fresh_deaths_ = 0; }

private:
    seat_state state_ = seat_state::down;
    u64 since_ns_ = 0, delay_ns_ = 0;
    u32 fresh_deaths_ = 0;
    bool proven_ = false, paused_ = false;
};

}  // namespace carousel::supervisor
