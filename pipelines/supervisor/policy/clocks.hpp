#pragma once
// Which clock runs while a frame waits, and which process exceeds its limit. Pure functions from plain data
// to one verdict per process; watch.cpp takes the readings and acts on the verdicts.
//
//   the frame (or its process) ...                    clock       limit         when the limit is exceeded
//   -----------------------------------------------------------------------------------------------------
//   waits for input, for a free output slot, for its  none        -             -
//     turn (fps) or for the earlier frames of its     (heart)
//     own lanes (in_flight)
//   is in process(): host work                        processing  frame         replaced, self-inflicted
//   waits for the device, as the oldest submitted     device      frame         replaced, self-inflicted; of
//     one of its process                                                        several on one GPU only the
//                                                                               oldest (one hung kernel slows
//                                                                               all), the others' clocks
//                                                                               restart
//   is in finish(), its commit or the steps after it  finishing   frame         replaced, self-inflicted
//   waits for space on a full disk                    none        -             -
//                                                     (heart)
//   waits for another host: a source without a        none        -             -
//     frame, a sink in finish()                       (heart)
//   waits for a process without a sign of life        heart       the           replaced; external cause
//     (stopped from outside, stuck in the kernel)                 pipeline's,   if a signal stopped it
//                                                                 or its own
//                                                                 if shorter;
//                                                                 0: 2000
//   is in a process under a tool (prefix, started     none        -             -
//     by hand)
//   is in a paused process (`carousel stop`)          none        -             all restart at cont
//   waits for a process that starts or loads an       start       30 s; not     replaced, self-inflicted
//     asset                                                       while another
//                                                                 stage loads
//                                                                 that asset
//   waits while the supervisor itself was starved     all restart
//   waits while a CPU quota or a freezer stops the    none        (uncounted_time.hpp)
//     run, or the supervisor does not run
//
// Limits are milliseconds; "frame" is frame_timeout_ms.
//
// frame_timeout_ms is the stage's value, or otherwise the pipeline's; 0: no limit. Until a process has
// committed its first frame, first_frame_timeout_ms applies if it is longer. Clocks are words in the
// process's entry (shm::incarnation), one per kind of work, so the time of one frame is never counted for
// another one: if several frames are in finish() at once, the clock runs for the one that began first. Each
// process is judged separately: several processes that hang at once are all replaced after one frame_timeout.

#include <span>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

inline constexpr u64 default_heart_timeout_ns = 2'000'000'000;

/// Readings of the process on a seat. Times are CLOCK_MONOTONIC in ns; 0: the clock is not running.
struct process_view {
    seat_state state = seat_state::running;
    bool tool = false;     ///< a debugger is attached, or the process was started by hand
    bool stopped = false;  ///< by a signal
    /// states of the job words of its epoch: OPEN; SUBMITTED or later; any of these
    bool open = false, submitted = false, has_frame = false;
    bool frames_wait = false;  ///< frames wait for this process; may be left false while its heart beats
    u64 processing_ns = 0, device_ns = 0, finishing_ns = 0, pause_ns = 0, heartbeat_ns = 0;
    /// no clock counts time before base_ns; the device clock also does not count time before device_base_ns
    u64 base_ns = 0, device_base_ns = 0;
    u64 frame_timeout_ns = 0;  ///< 0: none
    bool first_frame = false;  ///< no frame committed yet, and first_frame_timeout_ms applies
    u64 heart_timeout_ns = default_heart_timeout_ns;
    u32 device = shm::none;  ///< equal for all processes on one GPU; none: the process computes on the CPU
};

enum class offence : u8 { none, heart, processing, finishing, device };

/// Time since `since_ns`, in ns; time before `base_ns` does not count. 0 if the clock is not running.
[[nodiscard]] u64 age_ns(u64 since_ns, u64 base_ns, u64 now) noexcept;
[[nodiscard]] bool heart_is_late(const process_view& p, u64 now) noexcept;
/// One verdict per process, in the order of `all`.
[[nodiscard]] std::vector<offence> judge(std::span<const process_view> all, u64 now);
/// "process() of a frame takes longer than frame_timeout_ms = 2000", for the log.
[[nodiscard]] std::string describe(offence o, const process_view& p);

}  // namespace carousel::supervisor
