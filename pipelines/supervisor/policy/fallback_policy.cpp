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
    if (how.deadline) return how.was_ready ? gpu_error_kind::none : gpu_error_kind::fault;
    if (!how.known || how.signal != 0) return gpu_error_kind::none;
    if (how.exit_code == exit_code::gpu_lost) return gpu_error_kind::lost;
    // it may be a shortage of memory; if the stage has failed for good by it, it moves at once
    if (how.exit_code == exit_code::no_device && !how.was_ready) return gpu_error_kind::fault;
    return how.exit_code == exit_code::gpu_fault ? gpu_error_kind::fault : gpu_error_kind::none;
}

void gpu_error_log::add(const gpu_error& e) {
    if (e.kind == gpu_error_kind::none) return;
    const auto known = std::find_if(errors_.begin(), errors_.end(), [&](const gpu_error& o) {
        return e.domain != 0 && o.domain == e.domain && o.stage == e.stage;
    });
    if (known == errors_.end())
        errors_.push_back(e);
    else if (e.kind == gpu_error_kind::lost)
        known->kind = e.kind;
}

fallback_decision gpu_error_log::of(const fallback_rule& rule, u32 stage, bool whole_run) const {
    fallback_decision d;
    std::vector<u32> domains;  // each of their faults counts once, although all clients see it
    for (const gpu_error& e : errors_) {
        if (!whole_run && e.stage != stage) continue;
        if (d.errors == 0) d.first_ns = e.at_ns;
        d.last_ns = e.at_ns;
        d.stage = e.stage;
        d.lost = d.lost || e.kind == gpu_error_kind::lost;
        const bool counted = std::find(domains.begin(), domains.end(), e.domain) != domains.end();
        if (e.domain != 0 && !counted) domains.push_back(e.domain);
        d.errors += e.domain != 0 && counted ? 0 : 1;
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
