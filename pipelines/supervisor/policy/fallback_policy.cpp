#include "supervisor/policy/fallback_policy.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "device/device_failure.hpp"

namespace carousel::supervisor {
namespace {

bool is_set(const std::vector<bool>& flags, u32 stage) noexcept {
    return stage < flags.size() && flags[stage];
}

}  // namespace

gpu_error_kind gpu_error_of(const death& how) noexcept {
    if (!how.known || how.signal != 0 || how.deadline) return gpu_error_kind::none;
    if (how.exit_code == exit_code::gpu_lost) return gpu_error_kind::lost;
    if (how.exit_code == exit_code::no_device && !how.was_ready) return gpu_error_kind::lost;
    return how.exit_code == exit_code::gpu_fault ? gpu_error_kind::fault : gpu_error_kind::none;
}

void gpu_error_log::add(const gpu_error& e) {
    if (e.kind == gpu_error_kind::none) return;
    const bool known = e.domain != 0 && std::any_of(errors_.begin(), errors_.end(),
                                                    [&](const gpu_error& o) { return o.domain == e.domain; });
    if (!known) errors_.push_back(e);
}

fallback_decision gpu_error_log::of(const fallback_rule& rule, u32 stage, bool whole_run) const {
    fallback_decision d;
    for (const gpu_error& e : errors_) {
        if (!whole_run && e.stage != stage) continue;
        if (d.errors == 0) d.first_ns = e.at_ns;
        d.last_ns = e.at_ns;
        d.stage = e.stage;
        d.lost = d.lost || e.kind == gpu_error_kind::lost;
        ++d.errors;
    }
    for (u32 k = 0; k < rule.may_leave.size(); ++k)
        if (rule.may_leave[k] && (whole_run || k == stage)) d.stages.push_back(k);
    return d;
}

fallback_decision gpu_error_log::judge(const fallback_rule& rule, u64 now) {
    std::erase_if(errors_, [&](const gpu_error& e) {
        return e.at_ns + rule.window_ns < now || !is_set(rule.may_leave, e.stage);
    });
    const auto is_enough = [&](const fallback_decision& d) {
        return !d.stages.empty() && (d.lost || d.errors >= rule.after);
    };
    if (rule.as_run) {
        if (fallback_decision d = of(rule, 0, true); is_enough(d)) {
            errors_.clear();
            return d;
        }
    }
    for (u32 k = 0; k < rule.alone.size(); ++k) {
        if (!rule.alone[k]) continue;
        fallback_decision d = of(rule, k, false);
        if (!is_enough(d)) continue;
        std::erase_if(errors_, [&](const gpu_error& e) { return e.stage == k; });
        return d;
    }
    return {};
}

fallback_decision gpu_error_log::judge_failure(const fallback_rule& rule, u32 stage, u64 now) {
    const auto last =
        std::find_if(errors_.rbegin(), errors_.rend(), [&](const gpu_error& e) { return e.stage == stage; });
    if (last == errors_.rend()) return {};
    last->kind = gpu_error_kind::lost;
    last->at_ns = now;
    return judge(rule, now);
}

}  // namespace carousel::supervisor
