#pragma once
// Warm standbys. A standby is a process of the same stage that has claimed an entry, mapped the rings, opened
// its device and prepared itself, and then sleeps. A standby has epoch 0, which owns no word, so no action or
// failure of a standby can harm a frame. When the seat's holder dies, two CASes (raising the epoch, and
// naming the standby) suffice to make the standby work. Like the seat's holder, a standby outlives the
// supervisor, because a standby is needed most during failures.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

// ---- decisions: pure functions of these structures

struct standby_view {
    /// `configured`: the pipeline file requests a standby; `wanted_now`: the run's state permits one
    bool configured = false, wanted_now = false;
    seat_state seat = seat_state::down;
    bool holder_there = false, holder_ready = false;
    u32 restarts = 0, fresh_deaths = 0;  ///< of the seat
    bool there = false, standing_by = false, kill_sent = false;
    u64 age_ns = 0, start_timeout_ns = 0;
    bool due = false;  ///< the delay since the last standby is over
};
enum class standby_care : u8 { none, start, end_late };
/// Decides whether to start a standby, or to end one that does not become ready. While the holder is still
/// starting, a standby is started only if earlier holders have worked, because a stage that cannot work must
/// not be started twice at the same time.
[[nodiscard]] standby_care care_for(const standby_view& v) noexcept;

struct succession_view {
    bool configured = false;  ///< a standby is configured, and may take over after a death of this kind
    bool holder_running = false, holder_delivered = false;
    bool there = false, standing_by = false;
};
enum class succession : u8 { fresh, standby, none, starting, untried };
/// Chooses the successor. A standby becomes the successor only of a holder that has delivered frames. A
/// standby that took over in other cases would hide that a stage cannot work at all, and would bypass the
/// delays. The values none, starting and untried mean that a fresh process is started, and name the reason
/// why the standby does not take over (why_no_standby).
[[nodiscard]] succession choose_succession(const succession_view& v) noexcept;

// ---- carrying them out

/// Called when the run ends: standbys are ended, because they are no longer needed.
void no_more_starts(process_table& t) noexcept;
void keep_standby(process_table& t, seat& s, u64 now);
/// Makes the standby the successor of the seat's holder if choose_succession() permits it. The standby
/// remains in seat::standby, with an epoch.
[[nodiscard]] bool promote_standby(process_table& t, seat& s);
/// Ends the seat's standby, if there is one. From then on it takes over no seat, although its process may
/// still exist.
void end_standby(const seat& s) noexcept;
void standby_ended(process_table& t, seat& s, u64 now);
/// Handles a STANDBY entry that a dead supervisor has left.
/// `remembered`: the processes of the seat that the dead supervisor knew.
void adopt_standby(process_table& t, seat& s, u32 entry, const std::string& run_id,
                   const std::vector<process_record>& remembered);

}  // namespace carousel::supervisor
