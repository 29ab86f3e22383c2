#pragma once
// The bottleneck of a pipeline: one rule based on the time shares of its stages (busy_time.hpp defines the
// shares), used by every view and report.
//
// The bottleneck is the stage that could always continue: it waits neither for frames nor for room in its
// output. The own share of the bottleneck (the share of time in which it waits neither for frames nor for
// room, and has a frame in progress) is therefore near 1, while upstream stages wait for room and downstream
// stages wait for frames. Two other cases are distinguished: pipelines that are stopped from outside (a stage
// is down or paused) and pipelines that are intentionally slow (a source that waits for its clock). If
// contexts take turns on one GPU, the stages wait for their turns, and the GPU is the bottleneck.
//
// Pure functions of plain data; may be called from any thread.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "core/types.hpp"
#include "shm/control_block.hpp"

namespace carousel::telemetry {

struct snapshot;
struct rates;

/// Times that are summed over a stage's seats and counted since the control block (or the counters in it) was
/// created.
struct stage_time {
    u64 busy_ns = 0, wait_input_ns = 0, wait_output_ns = 0, wait_own_ns = 0, wait_turn_ns = 0;
};
[[nodiscard]] stage_time read_time(const shm::stage_counters& n) noexcept;

/// Shares of a seat's time, each 0..1; the sum of the waits is at most 1.
struct stage_shares {
    f64 busy = 0, wait_input = 0, wait_output = 0, wait_own = 0, wait_turn = 0;
    /// The share of time in which the stage waits for no other stage and has a frame in progress.
    [[nodiscard]] f64 own() const noexcept;
};
/// Returns the shares of the time between the readings `before` and `now`; this time is `span_ns` for each of
/// the `seats` seats. A wait is counted in pieces of at most 0.1 s, each when it ends, so the waits that are
/// counted in a short span may have begun before the span. If the sum of the waits exceeds 1, the waits are
/// scaled so that their sum is 1.
[[nodiscard]] stage_shares shares_of(const stage_time& now, const stage_time& before, u64 span_ns,
                                     u32 seats) noexcept;

/// A stage's condition from the point of view of the pipeline: the state of its best seat.
enum class stage_condition : u8 { up, starting, paused, down };

struct stage_load {
    stage_shares shares;
    stage_condition condition = stage_condition::up;
    bool source = false;
    bool waited_for = true;  ///< false: the stage reads only the newest frame (group = "latest") and blocks
                             ///< no stage
    bool required = true;    ///< false: frames bypass the stage
};

struct bottleneck {
    enum class kind : u8 {
        unknown,  ///< nothing has been measured, because the run is starting or has ended
        none,     ///< no bottleneck found
        stage,
        gpu,     ///< stages wait for their turns on a GPU, and no single stage is the bottleneck
        pace,    ///< the source waits for its clock
        paused,  ///< a stage is paused by the user; the others wait
        down,    ///< a stage has no process; the others wait
    } what = kind::unknown;
    u32 stage = shm::none;  ///< set for the kinds stage, paused and down
    f64 busy = 0;           ///< for kind stage
};

inline constexpr f64 least_own_share = 0.5;    ///< a stage with a lower own share is not the bottleneck
inline constexpr f64 least_lead = 0.05;        ///< over the second stage
inline constexpr f64 least_turn_share = 0.25;  ///< share of a stage's time spent waiting for its GPU turn
inline constexpr f64 least_pace_share = 0.05;  ///< share of a source's time spent waiting for its clock

/// Finds the bottleneck. `fps`: the source's rate in frames per second; 0: none.
[[nodiscard]] bottleneck find_bottleneck(const std::vector<stage_load>& stages, f64 fps);
/// Finds the bottleneck in the time span that `r` covers.
[[nodiscard]] bottleneck find_bottleneck(const snapshot& s, const rates& r);

/// One phrase: "bottleneck: fragment (busy 98 %)", "limited by fps: 60 frames/s", "bottleneck: the GPU (its
/// stages take turns)", "no bottleneck found", "fragment is stopped: the others wait for it", "fragment is
/// down: the others wait for it"; "" for unknown. `name`: the name of the stage b.stage.
[[nodiscard]] std::string describe(const bottleneck& b, const std::string& name, f64 fps);
/// "stage", "pace" and so on: the name of the kind in reports and on the dashboard.
[[nodiscard]] const char* name_of(bottleneck::kind k) noexcept;

/// A bottleneck in reports, `ps --json` and /status.json: {"kind": "stage" | "gpu" | "pace" | "none" |
/// "paused" | "down" | "vacant" | "unknown", "stage": name | null, "busy": 0..1 | null, "text": the sentence
/// for users}. The supervisor reports a port that no program has opened as "vacant"; this library treats it
/// as "down".
[[nodiscard]] nlohmann::json bottleneck_json(const bottleneck& b, const std::string& name, f64 fps);

}  // namespace carousel::telemetry
