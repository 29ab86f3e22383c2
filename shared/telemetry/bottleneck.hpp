#pragma once
// What limits a pipeline: one rule over the shares of time of its stages (busy_time.hpp says what each share
// counts), for every view and report alike.
//
// The stage that limits is the one that could always go on: it waits neither for frames nor for room behind.
// So its own share, the time in which it waits for neither and has a frame in work, is near 1, while those
// before it wait for room and those behind it for frames. Told apart from it are pipelines that are held up
// from outside (a stage that is down, or stopped) and those that are slower by intention (a source that waits
// for its clock). Where contexts take turns on one GPU the stages wait for their turns, and the GPU limits.
//
// Pure functions of plain data; any thread.

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

struct snapshot;
struct rates;

/// Of a stage's seats, as sums over them, since the control block was made (or the counters in it were).
struct stage_time {
    u64 busy_ns = 0, wait_input_ns = 0, wait_output_ns = 0, wait_own_ns = 0, wait_turn_ns = 0;
};
[[nodiscard]] stage_time read_time(const shm::stage_counters& n) noexcept;

/// Parts of a seat's time, each 0..1; the waits together are at most 1.
struct stage_shares {
    f64 busy = 0, wait_input = 0, wait_output = 0, wait_own = 0, wait_turn = 0;
    /// The time in which nobody else is waited for and a frame is in work.
    [[nodiscard]] f64 own() const noexcept;
};
/// What `now` has more than `before`, over `span_ns` of each of `seats`. A wait is counted when it ends, a
/// tenth of a second at most: what lies before a short span is taken off by scaling.
[[nodiscard]] stage_shares shares_of(const stage_time& now, const stage_time& before, u64 span_ns,
                                     u32 seats) noexcept;

/// How a stage is, for the pipeline: its best seat's state.
enum class stage_condition : u8 { up, starting, paused, down };

struct stage_load {
    stage_shares shares;
    stage_condition condition = stage_condition::up;
    bool source = false;
    bool waited_for = true;  ///< false: a latest reader, which holds nobody up
    bool required = true;    ///< false: frames pass the stage by
};

struct bottleneck {
    enum class kind : u8 {
        unknown,  ///< nothing has been measured: starting, ended
        nothing,  ///< no stage stands out
        stage,
        gpu,     ///< stages wait for their turns on a GPU, and none of them stands out
        pace,    ///< the source waits for its clock
        paused,  ///< a stage is stopped by the user: the others wait
        down,    ///< a stage has no process: the others wait
    } what = kind::unknown;
    u32 stage = shm::none;  ///< of stage, held, down
    f64 busy = 0;           ///< of stage
};

inline constexpr f64 least_own_share = 0.5;    ///< a stage below it has time left: what limits isn't a stage
inline constexpr f64 least_lead = 0.05;        ///< over the second one, or none stands out
inline constexpr f64 least_turn_share = 0.25;  ///< of a stage's time that it waits for its turn on the GPU
inline constexpr f64 least_pace_share = 0.05;  ///< of a source's time that it waits for its clock

/// `fps`: the rate that the source is given; 0: none.
[[nodiscard]] bottleneck find_bottleneck(const std::vector<stage_load>& stages, f64 fps);
/// Of the span of `r`.
[[nodiscard]] bottleneck find_bottleneck(const snapshot& s, const rates& r);

/// "fragment limits: busy 98 %", "the pace limits: 60 frames/s", "the GPU limits: its stages take turns", "no
/// stage stands out", "fragment is stopped:
/// the others wait for it", "fragment is down: the others wait for it", "" for unknown. `name`: of b.stage.
[[nodiscard]] std::string describe(const bottleneck& b, const std::string& name, f64 fps);
/// "stage", "pace" and so on, as reports and pages name the kind.
[[nodiscard]] const char* name_of(bottleneck::kind k) noexcept;

}  // namespace carousel::telemetry
