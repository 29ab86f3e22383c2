#pragma once
// What the supervisor knows of one seat, as an explicit state and one table of (state, event) -> (state,
// action). Nothing here touches a process: the table can be read, and is tested, as histories of events.
//
//   starting  a process was spawned and has not yet said that it is ready
//   running   it has
//   stopping  it was asked to end for good (`carousel down`, or the end of the run)
//   stopped   paused by `carousel stop`: SIGSTOP, no deadline runs. The pause lasts until `carousel cont`: if
//             the process dies, its successor is paused as soon as it is ready (paused())
//   backoff   it died by its own hand without having committed a frame; its successor waits
//   failed    given up
//   down      ended by `carousel down STAGE` until `carousel up STAGE`
//   vacant    of a port: no program has it
//   done      every frame of the run is through it, and it has exited

#include <string>
#include <vector>

#include "core/types.hpp"
#include "spec/restart_policy.hpp"

namespace carousel::supervisor {

enum class seat_state : u8 { starting, running, stopping, stopped, backoff, failed, down, done, vacant };
[[nodiscard]] const char* name_of(seat_state s) noexcept;

enum class seat_event : u8 {
    spawned,        ///< a process has been started
    ready,          ///< it is LIVE
    died_outside,   ///< killed from outside, or restarted by command
    died_fresh,     ///< by its own hand, and this process committed no frame
    died_exposed,   ///< the same by a signal, of a process that strangers can reach
    died_spent,     ///< by its own hand, after it had committed frames
    died_for_good,  ///< a death that is never followed by a restart (exit code, policy)
    died_refusing,  ///< said at its start that it can't run so (exit code 2)
    finished,       ///< exit after the last frame of the run
    due,            ///< the delay is over
    pause,          ///< `carousel stop`
    resume,         ///< `carousel cont`
    take_down,      ///< `carousel down STAGE`
    vacated,        ///< a port: whoever comes takes it
    bring_up,       ///< `carousel up STAGE`
};

enum class seat_action : u8 {
    none,
    start,    ///< spawn now
    delay,    ///< spawn after seat_machine::delay_ns()
    fail,     ///< the seat has failed
    suspend,  ///< SIGSTOP
    resume,   ///< SIGCONT
    end,      ///< end the process, for good
    refuse,   ///< the event makes no sense in this state: tell the user
};

inline constexpr u64 first_delay_ns = 100'000'000;
inline constexpr u64 longest_delay_ns = 5'000'000'000;
/// so many lives in a row that commit nothing, and the seat has failed; where strangers can reach its process
/// a signal is no such end: whoever can make it die would end the run
inline constexpr u32 max_fresh_deaths = 5;

/// How the death is told of a process that was ended because another one had broken their MPS domain.
inline constexpr const char* with_domain_text = "with its MPS domain";

/// And of one that was ended to be tried alone in a GPU context of its own, or to go back into the domain.
inline constexpr const char* moved_text = "moved into or out of its MPS domain";

/// And that of a death by a signal from outside, before the process is reaped: behind a GPU context that
/// takes about 90 ms.
inline constexpr const char* death_by_signal_text = "killed";

/// How a process ended, as far as it is known.
struct death {
    bool outside = false;            ///< signal from outside, `carousel kill`, `carousel restart`
    bool restart_requested = false;  ///< `carousel restart`: comes back whatever the policy says
    bool known = false;  ///< exit code and signal below are the kernel's or the process's own word
    int exit_code = 0;   ///< when signal == 0
    int signal = 0;
    bool deadline = false;       ///< killed by the supervisor for a missed deadline
    bool was_ready = false;      ///< it had said that it was ready
    u64 commits = 0;             ///< frames this process committed
    bool out_of_memory = false;  ///< the signal was the kernel's out-of-memory killer's
    bool injected = false;       ///< `carousel inject`: whatever it looks like, it came from outside
    bool through = false;        ///< every frame of the run is through its stage
    bool may_give_back =
        false;             ///< it stands for instances on another host: exit_code::gave_back is no fault
    bool exposed = false;  ///< strangers can reach it: it listens for another host
};
/// The event that a death is for the table.
[[nodiscard]] seat_event classify(const death& d, restart_policy policy) noexcept;
/// Did the process end by its own hand (fault, abort, exit, deadline)?
[[nodiscard]] bool self_inflicted(const death& d) noexcept;
/// Did the process end at its start since it got no thread, process, descriptor or memory? Such a death is no
/// attempt of the stage.
[[nodiscard]] bool lacked_resources(const death& d) noexcept;
/// "exit code 3", "signal 11 (SIGSEGV)", "deadline", for tables and messages.
[[nodiscard]] std::string describe(const death& d);

class seat_machine {
public:
    [[nodiscard]] seat_state state() const noexcept { return state_; }
    [[nodiscard]] u64 since_ns() const noexcept { return since_ns_; }
    [[nodiscard]] u64 delay_ns() const noexcept { return delay_ns_; }  ///< of the last seat_action::delay
    [[nodiscard]] u32 fresh_deaths() const noexcept { return fresh_deaths_; }
    /// A process of the seat has worked: a later one that can't be started meets a file that changed.
    [[nodiscard]] bool proven() const noexcept { return proven_; }
    /// `carousel stop` was called, and neither `cont`, `down` nor `up` since: the process, or the next one,
    /// is paused.
    [[nodiscard]] bool paused() const noexcept { return paused_; }
    /// As another supervisor, or a block before this one, had it.
    void restore_paused(bool paused) noexcept { paused_ = paused; }
    /// Changes state by the table; `now` is the state's new since_ns.
    seat_action on(seat_event e, u64 now) noexcept;
    /// What another supervisor knew of the seat.
    void resume(seat_state s, u64 since_ns, u32 fresh_deaths, bool proven = false) noexcept {
        state_ = s;
        proven_ = proven_ || proven || s == seat_state::running;
        since_ns_ = since_ns;
        fresh_deaths_ = fresh_deaths;
    }
    /// The present process has committed a frame: the row of lives without one is broken.
    void note_commit() noexcept { fresh_deaths_ = 0; }

private:
    seat_state state_ = seat_state::down;
    u64 since_ns_ = 0, delay_ns_ = 0;
    u32 fresh_deaths_ = 0;
    bool proven_ = false, paused_ = false;
};

}  // namespace carousel::supervisor
