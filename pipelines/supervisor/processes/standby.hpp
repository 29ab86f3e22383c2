#pragma once
// Warm standbys. A standby is a process of the same stage that has claimed an entry, mapped the rings, opened
// its device and prepared itself, and then sleeps: it bears epoch 0, which owns no word, so nothing that it
// does or fails to do can harm a frame. When the seat's holder dies, raising the epoch and naming the standby
// are two CASes, and it works. It outlives its supervisor as its holder does: it is needed most when things
// go badly.

#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

// ---- the rules: they look, and say what is to be done

struct standby_view {
    /// by the file; nothing in the run's state speaks against it
    bool configured = false, wanted_now = false;
    seat_state seat = seat_state::down;
    bool holder_there = false, holder_ready = false;
    u32 restarts = 0, fresh_deaths = 0;  ///< of the seat
    bool there = false, standing_by = false, kill_sent = false;
    u64 age_ns = 0, start_timeout_ns = 0;
    bool due = false;  ///< the delay since the last one is over
};
enum class standby_care : u8 { none, start, end_late };
/// Is a standby to be started, or one that does not become ready to be ended? Beside a holder that is still
/// starting only when others before it have worked: a stage that can't is not tried twice at once.
[[nodiscard]] standby_care care_for(const standby_view& v) noexcept;

struct succession_view {
    bool configured = false;  ///< configured, and the death is one that a standby may follow
    bool holder_running = false, holder_delivered = false;
    bool there = false, standing_by = false;
};
enum class succession : u8 { fresh, standby, none, starting, untried };
/// Who follows? Only behind a holder that has delivered a standby does: it must not hide that a stage can't
/// work at all, nor outrun its delays. none, starting, untried: a fresh process, and why it is not the
/// standby.
[[nodiscard]] succession choose_succession(const succession_view& v) noexcept;

// ---- carrying them out

/// The run ends: what only waits for a death that no longer matters may go.
void no_more_starts(process_table& t) noexcept;
void keep_standby(process_table& t, seat& s, u64 now);
/// The standby is named the successor of the seat's holder, when the rule says so. It is seat::standby still,
/// with an epoch.
[[nodiscard]] bool promote_standby(process_table& t, seat& s);
void end_standby(const seat& s) noexcept;
void standby_ended(process_table& t, seat& s, u64 now);
/// A STANDBY entry that a dead supervisor has left.
void adopt_standby(process_table& t, seat& s, u32 entry, const std::string& run_id);

}  // namespace carousel::supervisor
