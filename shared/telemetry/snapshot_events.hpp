#pragma once
// The changes between two snapshots as sentences: deaths and returns of stages, pauses, torn and tombstone
// frames, the end of the run. Used for logs below tables and for the banner over a stalled picture. One
// thread per object.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "ring/exit_notes.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::telemetry {

enum class event_kind : u8 { info, good, warning, bad };
struct run_event {
    u64 time_ns = 0;
    event_kind kind = event_kind::info;
    u32 stage = shm::none;
    std::string text;
};

/// The last observed end of a process, and its successor.
struct crash {
    u64 died_ns = 0;
    u64 back_ns = 0;  ///< time when the successor was running; 0: no successor is running yet
    u32 stage = shm::none, seat = shm::none;
    u32 old_pid = 0, new_pid = 0;
    u32 turn = 0;       ///< the value that seat_view::turn will have for its successor
    std::string label;  ///< "fragment.1"
    std::string how;    ///< "signal 9 (SIGKILL)"; "": unknown, or the end was requested
    ring::requested_end asked = ring::requested_end::none;  ///< the command that requested the end
};
/// "fragment (pid 12) died: signal 9 (SIGKILL)", "fragment (pid 12) was ended by `carousel down`".
[[nodiscard]] std::string describe(const crash& c);
/// Describes what happens while the seat has no successor: "its successor is being started". `state`: the
/// supervisor's name of the seat's state ("backoff", "failed", "down"); "": unknown.
[[nodiscard]] std::string describe_vacancy(const crash& c, const std::string& state);

class event_tracker {
public:
    /// Compares the snapshot with the previous one; the first snapshot of a run only adds the event that the
    /// run was found. Deaths are also kept for take_deaths().
    void feed(const snapshot& s);
    void add(run_event e);
    /// Completes the last crash with the supervisor's description of how the seat's process ended ("signal 9
    /// (SIGKILL)").
    void explain(u32 seat, const std::string& how);
    void clear();
    /// Moves the events and deaths of `from` since the last merge to this object; `from` continues to
    /// observe.
    void merge(event_tracker& from);

    [[nodiscard]] const std::deque<run_event>& events() const noexcept { return events_; }
    [[nodiscard]] const std::optional<crash>& last_crash() const noexcept { return crash_; }
    /// Returns the deaths of processes since the last call.
    [[nodiscard]] std::vector<crash> take_deaths();

private:
    struct seat_memory {
        u32 epoch = 0, pid = 0;
        ring::entry_state state = ring::entry_state::unused;
        bool paused = false;
        u64 died_ns = 0;
    };
    struct stage_memory {
        u64 torn = 0, tombstones = 0;
    };
    void compare_seat(const snapshot& s, u32 seat);
    void note_death(const snapshot& s, u32 seat, u32 pid);
    void compare_stage(const snapshot& s, u32 stage);

    std::string run_;
    std::vector<seat_memory> seats_;
    std::vector<stage_memory> stages_;
    u64 end_ = ring::end_unknown;
    bool ended_ = false;
    std::deque<run_event> events_;
    std::vector<crash> deaths_;
    std::optional<crash> crash_;
};

}  // namespace carousel::telemetry
