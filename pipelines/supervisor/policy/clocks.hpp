#pragma once
// Which clock runs while a frame waits, and which process exceeds its limit. Pure functions from plain data
// to one verdict per process; watch.cpp takes the readings and acts on the verdicts.
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
//     by hand, `carousel debug`)
//   is in a paused process (`carousel stop`)          none        -             all restart at cont
//   waits for a process that starts or loads an       start       30 s; not     replaced, self-inflicted
//     asset                                                       while another
//                                                                 stage loads
//                                                                 that asset
//   waits while the supervisor itself was starved     all restart
//   waits while a CPU quota or a freezer stops the    none
//     run, or the supervisor does not run
// Limits are milliseconds; "frame" is frame_timeout_ms.
// frame_timeout_ms is the stage's value, or otherwise the pipeline's; 0: no limit. Until a process has
// committed its first frame, first_frame_timeout_ms applies if it is longer. Clocks are words in the
// process's entry (shm::incarnation), one per kind of work, so the time of one frame is never counted for
// another frame. If several frames are in finish() at once, the clock runs for the frame that began first.
// Each process is judged separately: several processes that hang at once are all replaced after one
// frame_timeout.

#include <span>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"
#include "supervisor/policy/state_table.hpp"

namespace carousel::supervisor {

inline constexpr u64 default_heart_timeout_ns = 2'000'000'000;

/// What the clocks and the job words of the process on a seat show. Times are CLOCK_MONOTONIC in ns; 0: the
/// clock is not running.
struct process_view {
    seat_state state = seat_state::running;
    bool tool = false;     ///< a debugger is attached, or the process was started by hand
    bool stopped = false;  ///< by a signal
    /// open: a job word of the process's epoch is OPEN; submitted: a job word of that epoch is SUBMITTED or
    /// in a later state; has_frame: a job word of that epoch is in any of these states
    bool open = false, submitted = false, has_frame = false;
    bool frames_wait = false;  ///< frames wait for this process; need not be determined while its heartbeat
                               ///< continues
    u64 processing_ns = 0, device_ns = 0, finishing_ns = 0, pause_ns = 0, heartbeat_ns = 0;
    /// no clock counts time before base_ns; the device clock also does not count time before device_base_ns
    u64 base_ns = 0, device_base_ns = 0;
    u64 frame_timeout_ns = 0;  ///< 0: none
    bool first_frame = false;  ///< the process has committed no frame yet, and first_frame_timeout_ms applies
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

// Records the time that no deadline counts, because a CPU quota or a freezer had stopped the run's control
// group, or because the supervisor itself did not run. Plain data; cgroup_watch.hpp supplies it.

/// All times are CLOCK_MONOTONIC in nanoseconds.
class uncounted_time {
public:
    /// Excludes `ns` nanoseconds of the interval from `from` to `until`; if `ns` exceeds the interval,
    /// excludes the whole interval. Intervals must be in order and must not overlap.
    void add(u64 from, u64 until, u64 ns);
    /// Returns the excluded time between two times. Within an interval the excluded time is spread evenly.
    [[nodiscard]] u64 between(u64 from, u64 until) const noexcept;
    /// Shifts the start time `since` of a clock by the excluded time since then: `now` minus the result is
    /// the clock's counted age. 0, which stands for a clock that is not running, remains 0.
    [[nodiscard]] u64 shifted(u64 since, u64 now) const noexcept {
        return since == 0 ? 0 : since + between(since, now);
    }

    /// maximum number of points; above this number, older intervals are merged
    static constexpr std::size_t most_points = 4096;

private:
    struct point {
        u64 at = 0, sum = 0;  ///< total excluded time up to `at`
    };
    [[nodiscard]] u64 sum_at(u64 time) const noexcept;
    std::vector<point> points_;
};

}  // namespace carousel::supervisor
