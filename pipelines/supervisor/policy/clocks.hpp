#pragma once
// Which clock runs while a frame waits, and who is late by it. Plain data in, a verdict for each process out;
// watch.cpp looks and acts.
//
//   while the frame (or its process) ...             runs        limit          when it is passed
//   ------------------------------------------------------------------------------------------------------
//   waits for input, for room behind it, for its     none        -              -
//     turn (fps), or behind its own lane-mates       (the heart)
//     (in_flight)
//   is in process(): host work                       processing  frame          replaced: its own act
//   waits for the device, as the oldest submitted    device      frame          replaced: its own act; of
//   several
//     one of its process                                                        on one GPU the oldest only
//     (one
//                                                                               hung kernel slows all), the
//                                                                               others' clocks begin anew
//   is in finish(), its commit or what follows it    finishing   frame          replaced: its own act
//   waits for room on a full disk                    none        -              -
//                                                    (the heart)
//   waits for another host: a source with nothing    none        -              -
//     in hand, a sink in finish()                    (the heart)
//   is wanted from a process that gives no sign of   heart       the            replaced; one that somebody
//   has
//     life (stopped from outside, stuck in the                   pipeline's,    stopped is innocent
//     kernel)                                                    or its own if
//                                                                shorter;
//                                                                0: 2000
//   sits in a process under a tool (prefix, by hand) none        -              -
//   sits in a held process (`carousel stop`)         none        -              all begin anew at `carousel
//   cont` waits for a process that starts, loads an asset  start       30 s; not      replaced: its own act
//                                                                while another
//                                                                stage loads
//                                                                that asset
//   waits while the supervisor itself was starved    all begin anew
//   waits while a CPU quota or a freezer stops the   none        (uncounted_time.hpp)
//     run, or the supervisor doesn't run
//
// Limits are milliseconds; "frame" is frame_timeout_ms.
//
// frame_timeout_ms is the stage's, else the pipeline's; 0: none. Until a process has committed its first
// frame first_frame_timeout_ms counts where it is longer. Clocks are words of the process's own entry
// (shm::incarnation), one for each kind of work, so a frame is never charged with the time that another one
// takes: where several are in finish() at once it runs for the one that began first. Each process is judged
// by itself: several that hang at once are all replaced one frame_timeout later.

#include <span>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

inline constexpr u64 default_heart_timeout_ns = 2'000'000'000;

/// What is known of the process that sits on a seat. Times are CLOCK_MONOTONIC ns, 0: the clock doesn't run.
struct process_view {
    seat_state state = seat_state::running;
    bool tool = false;     ///< somebody looks at it with a debugger, or it was started by hand
    bool stopped = false;  ///< by a signal
    /// job words of its epoch: OPEN; SUBMITTED or further; any of them
    bool open = false, submitted = false, has_frame = false;
    bool frames_wait = false;  ///< for it; need not be known while its heart beats
    u64 processing_ns = 0, device_ns = 0, finishing_ns = 0, pause_ns = 0, heartbeat_ns = 0;
    /// no clock counts time before the first, the device's none before the second
    u64 base_ns = 0, device_base_ns = 0;
    u64 frame_timeout_ns = 0;  ///< 0: none
    bool first_frame = false;  ///< the process has committed none yet, and that has a limit of its own
    u64 heart_timeout_ns = default_heart_timeout_ns;
    u32 device = shm::none;  ///< the same for all that share a GPU; none: its device is its own threads
};

enum class offence : u8 { none, heart, processing, finishing, device };

/// How long since; nothing before `base` counts.
[[nodiscard]] u64 age_ns(u64 since_ns, u64 base_ns, u64 now) noexcept;
[[nodiscard]] bool heart_is_late(const process_view& p, u64 now) noexcept;
/// A verdict for each.
[[nodiscard]] std::vector<offence> judge(std::span<const process_view> all, u64 now);
/// "process() of a frame takes longer than frame_timeout_ms = 2000", for the log.
[[nodiscard]] std::string describe(offence o, const process_view& p);

}  // namespace carousel::supervisor
