#include "supervisor/engine/device_switch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "ring/topology.hpp"
#include "supervisor/engine/block_custodian.hpp"
#include "supervisor/engine/progress.hpp"
#include "supervisor/engine/run_facts.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/engine/run_rebuild.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/plan/memory_plan.hpp"
#include "supervisor/plan/run_setup.hpp"
#include "supervisor/processes/abandoned_processes.hpp"
#include "supervisor/processes/process_table.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/stores/memory_store.hpp"

namespace carousel::supervisor {
namespace {

constexpr std::size_t max_records = 100;

/// By link: the rings of both plans have the same slots, so frames in the memory of one can enter the other.
std::vector<bool> equal_rings(const ring::plan& a, const ring::plan& b,
                              const std::vector<ring_place>& rings) {
    std::vector<bool> same;
    for (const auto [k, output] : rings)
        same.push_back(ring::derived_slots(a, k, output) == ring::derived_slots(b, k, output) &&
                       ring::derived_window(a, k, output) == ring::derived_window(b, k, output));
    return same;
}

}  // namespace

device_switch::device_switch(process_table& seats, memory_store& memory, block_custodian& block,
                             run_phase& phase, run_rebuild& rebuild, run_facts& facts,
                             std::function<void()> save_state)
    : seats_(&seats),
      memory_(&memory),
      block_(&block),
      phase_(&phase),
      rebuild_(&rebuild),
      facts_(&facts),
      save_state_(std::move(save_state)) {}

void device_switch::set_target(device_target target, bool fresh) {
    target_ = std::move(target);
    seats_->may_leave_gpu = target_.setup != nullptr;
    if (fresh)
        facts_->fallback = target_.begins_with;
    else if (facts_->fallback.probe.is_null())  // the dead supervisor has not saved it
        facts_->fallback.probe = target_.begins_with.probe;
}

fallback_rule device_switch::rule() const {
    const run_setup& s = *target_.setup;
    fallback_rule r{s.fallback_after,
                    static_cast<u64>(s.fallback_window_s * 1e9),
                    s.fallback == fallback_kind::cpu,
                    {},
                    {}};
    for (const stage_setup& st : s.stages) {
        r.may_leave.push_back(st.may_leave_gpu && !st.left_gpu);
        r.alone.push_back(r.may_leave.back() && st.spec.fallback == fallback_kind::cpu);
    }
    return r;
}

std::vector<std::string> device_switch::names_of(const std::vector<u32>& stages) const {
    std::vector<std::string> names;
    for (const u32 k : stages) names.push_back(target_.setup->stages[k].spec.name);
    return names;
}

void device_switch::watch(u64 now, bool may_act) {
    if (delivered_at_ && delivered(*seats_->setup, block_->block()) > *delivered_at_) {
        delivered_at_.reset();
        if (!facts_->fallback.last.empty()) facts_->fallback.last.back().next_frame_ns = now;
    }
    if (target_.setup == nullptr) return seats_->gpu_errors.clear();
    for (auto& s : seats_->seats) {
        for (auto& p : s->gone) {
            if (!p->on_gpu || p->ended || p->stuck || !p->kill_sent || p->seen_dead_ns == 0 ||
                now < p->seen_dead_ns + gpu_exit_timeout_ns)
                continue;
            p->stuck = true;
            seats_->gpu_errors.push_back({s->stage, gpu_error_kind::lost, now, p->mps.generation});
        }
    }
    for (const gpu_error& e : std::exchange(seats_->gpu_errors, {})) errors_.add(e);
    if (!may_act || !phase_->is_open()) return;
    if (const fallback_decision d = errors_.judge(rule(), now); !d.stages.empty()) leave(d);
}

bool device_switch::moves_instead_of_failing() {
    if (target_.setup == nullptr || !seats_->failure || !phase_->is_open()) return false;
    for (const gpu_error& e : std::exchange(seats_->gpu_errors, {})) errors_.add(e);
    for (const auto& s : seats_->seats) {
        if (s->label != seats_->failure->label) continue;
        const fallback_decision d = errors_.judge_failure(rule(), s->stage, now_ns());
        if (d.stages.empty()) return false;
        seats_->failure.reset();
        leave(d);
        return true;
    }
    return false;
}

void device_switch::leave(const fallback_decision& d) {
    const std::string& stage = target_.setup->stages[d.stage].spec.name;
    const std::string& device = target_.setup->stages[d.stage].device_name;
    const std::string why =
        d.lost ? fmt::format("{} can't be used by {}", device, stage)
               : fmt::format("{} GPU error{} within {} s, the last of {}", d.errors, d.errors == 1 ? "" : "s",
                             target_.setup->fallback_window_s, stage);
    fallback_state next = facts_->fallback;
    const std::vector<std::string> moved = names_of(d.stages);
    next.stages.insert(next.stages.end(), moved.begin(), moved.end());
    next.why = why;
    ++next.fallbacks;
    seats_->device_failed = true;
    begin(std::move(next), moved, "cpu",
          fmt::format("{}: {} continue{} on the CPU", why, fmt::join(moved, ", "),
                      moved.size() == 1 ? "s" : ""),
          d.first_ns);
}

void device_switch::begin_record(const std::vector<std::string>& moved, const std::string& to, u64 since_ns,
                                 fallback_state& next) const {
    next.since_ns = now_ns();
    if (next.last.size() >= max_records) next.last.erase(next.last.begin());
    next.last.push_back({moved, to, next.why, since_ns, 0, 0});
}

void device_switch::begin(fallback_state next, const std::vector<std::string>& moved, const std::string& to,
                          const std::string& text, u64 since_ns) {
    begin_record(moved, to, since_ns, next);
    next_ = std::move(next);
    rebuild_->begin(text);
}

run::verdict device_switch::carry_out(const run::device_request& r) {
    const auto refuse_usage = [](std::string text) {
        return run::refused(exit_code::usage, std::move(text));
    };
    if (target_.setup == nullptr || movable_stages(*target_.setup).empty())
        return refuse_usage(
            fmt::format("no stage of {} can leave its GPU: set fallback = \"cpu\" in the file "
                        "(`carousel validate` states what that requires)",
                        seats_->setup->name));
    const run_setup& s = *target_.setup;
    if (phase_->is(phase::rebuilding) || is_due())
        throw run::refused_for_now(fmt::format("{} is being rebuilt: try again", s.name));
    if (!phase_->is_open())
        return run::refused(exit_code::stage_failed, fmt::format("{} is {}", s.name, phase_->name()));
    const bool to_cpu = r.device == "cpu";
    fallback_state next = facts_->fallback;
    std::vector<std::string> moved;
    bool known = r.stage.empty();
    for (const stage_setup& st : s.stages) {
        if (!st.may_leave_gpu || (!r.stage.empty() && st.spec.name != r.stage)) continue;
        known = true;
        if (!to_cpu && st.gpu_name != r.device)
            return refuse_usage(
                fmt::format("device {}: {} is configured for {}, so it runs there or on the "
                            "CPU: carousel device {} or cpu",
                            r.device, st.spec.name, st.gpu_name, st.gpu_name));
        if (st.left_gpu != to_cpu) moved.push_back(st.spec.name);
    }
    if (!known)
        return refuse_usage(fmt::format("{} has no stage {} that can leave its GPU; these can: {}", s.name,
                                        r.stage, fmt::join(movable_stages(s), ", ")));
    if (moved.empty()) return run::carried_out(fmt::format("{} runs on {} already", s.name, r.device));
    if (to_cpu) {
        next.stages.insert(next.stages.end(), moved.begin(), moved.end());
        ++next.fallbacks;
        next.why = "requested";
    } else {
        std::erase_if(next.stages, [&](const std::string& name) {
            return std::find(moved.begin(), moved.end(), name) != moved.end();
        });
        if (!r.probe.is_null()) next.probe = r.probe;
        ++next.returns;
        next.why = next.stages.empty() ? "" : next.why;
    }
    (void)target_.plan(next);        // refuses what can't be planned, before any process ends
    seats_->device_failed = to_cpu;  // the user may know that it has
    const std::string text = fmt::format("{} move{} to {}", fmt::join(moved, ", "),
                                         moved.size() == 1 ? "s" : "", to_cpu ? "the CPU" : r.device);
    begin(std::move(next), moved, r.device, fmt::format("`carousel device`: {}", text), now_ns());
    return run::carried_out(text);
}

std::optional<run::ps_fallback> device_switch::shown(u64 now) const {
    const fallback_state& f = facts_->fallback;
    if (target_.setup == nullptr || (movable_stages(*target_.setup).empty() && f.fallbacks == 0))
        return std::nullopt;
    run::ps_fallback out{f.stages, "", f.why, 0, f.fallbacks, f.returns};
    for (const stage_setup& st : target_.setup->stages)
        if (out.configured.empty() && st.may_leave_gpu) out.configured = st.gpu_name;
    if (!f.stages.empty()) out.for_s = static_cast<f64>(now - std::min(now, f.since_ns)) / 1e9;
    return out;
}

void device_switch::apply() {
    if (!next_) return;
    run_setup& s = *target_.setup;
    if (!block_plan_) block_plan_ = guarded_plan_of(s);
    std::optional<run_setup> planned;
    try {
        planned = target_.plan(*next_);
    } catch (const error& e) {
        seats_->log_line(fmt::format("the stages stay where they are: {}", e.what()));
        return next_.reset();
    }
    next_->depths = depths_json(*planned);
    const bool other_gpus = !same_gpus(next_->probe, facts_->fallback.probe);
    copy_device_plan(s, *planned);
    facts_->fallback = *std::exchange(next_, std::nullopt);
    save_state_();
    if (other_gpus) {
        try {
            target_.keep_identity(facts_->fallback);
        } catch (const error& e) {  // costs an adoption of the run, and not the run
            seats_->log_line(fmt::format("the run's GPUs are not saved: {}", e.what()));
        }
    }
    crash_here(crash_point::devices_chosen);
    // a standby that a rebuild keeps has the other device open
    for (auto& each : seats_->seats) end_standby(*each);
    // Device work of a process that has not ended can write into all memory that it has mapped. That of a
    // client of an MPS domain may run until its server has ended.
    const bool all_ended = !has_unended(*seats_) && seats_->domain == nullptr;
    abandon_unended(*seats_);
    const std::vector<bool> same = equal_rings(*block_plan_, guarded_plan_of(s), s.rings());
    block_->mark_replaced(memory_->replan(plan_memory(s), all_ended ? same : std::vector<bool>()));
    moved_ = true;
}

void device_switch::replace_memory() {
    abandon_unended(*seats_);
    block_->mark_replaced(memory_->replan(plan_memory(*seats_->setup), {}));
}

bool device_switch::fall_back(const std::string& why) {
    if (target_.setup == nullptr) return false;
    const fallback_rule may = rule();
    fallback_state next = facts_->fallback;
    std::vector<std::string> moved;
    for (u32 k = 0; k < may.may_leave.size(); ++k)
        if (may.may_leave[k]) moved.push_back(target_.setup->stages[k].spec.name);
    if (moved.empty()) return false;
    next.stages.insert(next.stages.end(), moved.begin(), moved.end());
    next.why = why;
    ++next.fallbacks;
    begin_record(moved, "cpu", now_ns(), next);
    next_ = std::move(next);
    seats_->log_line(fmt::format("{}: {} continue{} on the CPU", why, fmt::join(moved, ", "),
                                 moved.size() == 1 ? "s" : ""));
    apply();
    return moved_;
}

void device_switch::done(u64 first) {
    seats_->device_failed = false;
    block_plan_.reset();
    if (!std::exchange(moved_, false)) return;
    if (facts_->fallback.last.empty() || facts_->fallback.last.back().next_frame_ns != 0) return;
    facts_->fallback.last.back().frame = first;
    delivered_at_ = delivered(*seats_->setup, block_->block());
}

}  // namespace carousel::supervisor
