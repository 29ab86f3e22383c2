#include "telemetry/bottleneck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/enum_names.hpp"
#include "core/json.hpp"
#include "telemetry/busy_time.hpp"
#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_series.hpp"

namespace carousel::telemetry {
namespace {

/// True if the source waits for its clock more than for room in its output: in that case the bottleneck is
/// the rate in the pipeline file.
bool pace_limits(const std::vector<stage_load>& stages) {
    bool any = false;
    for (const stage_load& s : stages) {
        if (!s.source) continue;
        if (s.shares.wait_input < least_pace_share || s.shares.wait_input < s.shares.wait_output)
            return false;
        any = true;
    }
    return any;
}

stage_condition condition_of(const seat_view& s) noexcept {
    if (s.paused) return stage_condition::paused;
    switch (s.state) {
        case ring::entry_state::live:
            return stage_condition::up;
        case ring::entry_state::starting:
            return stage_condition::starting;
        default:
            return stage_condition::down;
    }
}

/// True if the supervisor has closed the groups of an optional stage. If a stage is only down, and its groups
/// are open, the pipeline still waits for it.
bool frames_pass_by(const snapshot& s, u32 stage) noexcept {
    const stage_view& v = s.stages[stage];
    if ((v.flags & shm::stage_flag::skips) != 0) return true;
    if ((v.flags & shm::stage_flag::optional) == 0) return false;
    return std::any_of(v.inputs.begin(), v.inputs.end(), [&](u32 link) {
        const std::vector<group_view>& groups = s.links[link].groups;
        return std::any_of(groups.begin(), groups.end(), [&](const group_view& g) {
            return g.stage == stage && g.state == ring::group_state::closed;
        });
    });
}

}  // namespace

stage_time read_time(const shm::stage_counters& n) noexcept {
    const auto of = [](const shm::word& w) { return w.load(std::memory_order_relaxed); };
    return {of(n.busy_ns), of(n.wait_input_ns), of(n.wait_output_ns), of(n.wait_own_ns), of(n.wait_turn_ns)};
}

f64 stage_shares::own() const noexcept {
    return std::clamp(std::min(busy, 1.0 - wait_input - wait_output - wait_turn), 0.0, 1.0);
}

stage_shares shares_of(const stage_time& now, const stage_time& before, u64 span_ns, u32 seats) noexcept {
    if (span_ns == 0) return {};
    const f64 whole = static_cast<f64>(span_ns) * std::max(1U, seats);
    const auto share = [whole](u64 a, u64 b) { return std::min(1.0, static_cast<f64>(grown(a, b)) / whole); };
    stage_shares out{share(now.busy_ns, before.busy_ns), share(now.wait_input_ns, before.wait_input_ns),
                     share(now.wait_output_ns, before.wait_output_ns),
                     share(now.wait_own_ns, before.wait_own_ns),
                     share(now.wait_turn_ns, before.wait_turn_ns)};
    const f64 sum = out.wait_input + out.wait_output + out.wait_own + out.wait_turn;
    if (sum > 1)
        for (f64* wait : {&out.wait_input, &out.wait_output, &out.wait_own, &out.wait_turn}) *wait /= sum;
    return out;
}

bottleneck find_bottleneck(const std::vector<stage_load>& stages, f64 fps) {
    using kind = bottleneck::kind;
    constexpr std::pair<stage_condition, kind> outside[] = {{stage_condition::down, kind::down},
                                                            {stage_condition::paused, kind::paused},
                                                            {stage_condition::starting, kind::unknown}};
    for (const auto& [condition, what] : outside)
        for (u32 k = 0; k < stages.size(); ++k)
            if (stages[k].condition == condition && stages[k].required && stages[k].waited_for)
                return {what, what == kind::unknown ? shm::none : k, 0};
    if (stages.empty()) return {};
    if (fps > 0 && pace_limits(stages)) return {kind::pace, shm::none, 0};
    u32 first = shm::none;
    f64 most = 0, second = 0;
    bool anything = false, turns = false;
    for (u32 k = 0; k < stages.size(); ++k) {
        anything = anything || stages[k].shares.busy > 0;
        if (!stages[k].waited_for || stages[k].condition != stage_condition::up) continue;
        turns = turns || stages[k].shares.wait_turn >= least_turn_share;
        const f64 own = stages[k].shares.own();
        second = std::max(second, std::min(own, most));
        if (own > most) {
            most = own;
            first = k;
        }
    }
    if (!anything) return {};
    if (first == shm::none || most < least_own_share || most - second < least_lead)
        return {turns ? kind::gpu : kind::none, shm::none, 0};
    return {kind::stage, first, stages[first].shares.busy};
}

bottleneck find_bottleneck(const snapshot& s, const rates& r) {
    if (r.span_s <= 0 || r.stages.size() != s.stages.size() || s.ended()) return {};
    std::vector<stage_load> loads;
    for (u32 k = 0; k < s.stages.size(); ++k) {
        const stage_view& v = s.stages[k];
        stage_load l;
        l.shares = r.stages[k].time;
        l.source = v.source;
        l.waited_for = (v.flags & shm::stage_flag::latest) == 0;
        l.required = !frames_pass_by(s, k);
        for (u32 seat = v.first_seat; seat < v.first_seat + v.seats; ++seat) {
            const stage_condition one = condition_of(s.seats[seat]);
            l.condition = seat == v.first_seat ? one : std::min(l.condition, one);
        }
        loads.push_back(l);
    }
    return find_bottleneck(loads, s.fps);
}

std::string describe(const bottleneck& b, const std::string& name, f64 fps) {
    switch (b.what) {
        case bottleneck::kind::unknown:
            return "";
        case bottleneck::kind::none:
            return "no bottleneck found";
        case bottleneck::kind::stage:
            return fmt::format("bottleneck: {} (busy {:.0f} %)", name, b.busy * 100);
        case bottleneck::kind::gpu:
            return "bottleneck: the GPU (its stages take turns)";
        case bottleneck::kind::pace:
            return fmt::format("limited by fps: {:.6g} frames/s", fps);
        case bottleneck::kind::paused:
            return fmt::format("{} is stopped, and the others wait for it", name);
        case bottleneck::kind::down:
            return fmt::format("{} is down, and the others wait for it", name);
    }
    return "";
}

BOOST_DESCRIBE_ENUM(bottleneck::kind, unknown, none, stage, gpu, pace, paused, down)
const char* name_of(bottleneck::kind k) noexcept { return enum_name(k); }

nlohmann::json bottleneck_json(const bottleneck& b, const std::string& name, f64 fps) {
    return {{"kind", name_of(b.what)},
            {"stage", b.stage != shm::none ? nlohmann::json(name) : nlohmann::json()},
            {"busy", b.what == bottleneck::kind::stage ? nlohmann::json(b.busy) : nlohmann::json()},
            {"text", describe(b, name, fps)}};
}

}  // namespace carousel::telemetry
